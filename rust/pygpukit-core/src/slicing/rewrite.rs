//! The rewriter: an entry whose blocks add an offset to their place and learn the size of the whole grid.
//!
//! The entry gets one more parameter, struct { uint32_t first[3], whole[3]; }. Every read of %ctaid becomes itself plus
//! first, every read of %nctaid becomes whole. Device functions that read them, or call one that does, get the six
//! numbers as parameters. All else stays as it is, byte for byte; other entries are left out.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::analysis::{Analysis, Call, Read};
use super::parse::{Function, Instruction, Module};
use super::reason::{Reason, Unsliceable};

/// Size of the added parameter.
pub const PARAMETER_BYTES: u32 = 24;

/// Begins every name that the rewriter adds.
pub const PREFIX: &str = "pk_slice";

#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Variables of the module that the host can write.
    pub host_variables: BTreeSet<String>,
    /// The newest PTX that the driver takes, as (major, minor): a later .version is lowered to it. A driver refuses a
    /// later version whatever the module holds; an instruction that it does not know it still refuses.
    pub newest: Option<(u32, u32)>,
}

/// The module with `entry` alone, made to run on a part of its grid.
pub fn rewrite(source: &str, entry: &str, options: &Options) -> Result<String, Unsliceable> {
    let module = Module::parse(source)?;
    let analysis = Analysis::new(&module)?;
    let Some(at) = analysis.entry(entry) else {
        let known = module.entries().join(", ");
        let text = format!("the module has no entry {entry}; it has: {known}");
        return Err(Unsliceable::new(Reason::NoEntry, "", 1, text));
    };
    analysis.check(at, &options.host_variables)?;
    Ok(Rewriter::new(&analysis).run(at, options))
}

/// Changes of the text, by the place where they are made: what is put in, and up to where it replaces.
struct Rewriter<'m> {
    analysis: &'m Analysis<'m>,
    placed: BTreeSet<&'m str>,
    edits: Vec<(usize, usize, String)>,
}

impl<'m> Rewriter<'m> {
    fn new(analysis: &'m Analysis<'m>) -> Rewriter<'m> {
        Rewriter {
            analysis,
            placed: analysis.placed(),
            edits: Vec::new(),
        }
    }

    fn run(mut self, entry: usize, options: &Options) -> String {
        let module = self.analysis.module;
        self.lower_version(options);
        for (at, function) in module.functions.iter().enumerate() {
            if function.is_entry && at != entry {
                self.replace(module.tokens[function.start].span.start, self.after(function.end), "");
                continue;
            }
            if at != entry && !self.placed.contains(module.text(function.name)) {
                continue;
            }
            self.add_parameters(function);
            if let Some((open, _)) = function.body {
                self.replace(self.after(open), self.after(open), "\n\t.reg .b32 %pk_slice_<9>;");
                for (instruction, read) in &self.analysis.uses[at].reads {
                    self.replace_read(function, *instruction, read);
                }
                for call in &self.analysis.uses[at].calls {
                    if self.placed.contains(module.text(call.target)) {
                        self.pass_on(function, call);
                    }
                }
            }
        }
        self.text()
    }

    fn after(&self, token: usize) -> usize {
        self.analysis.module.tokens[token].span.end
    }

    fn before(&self, token: usize) -> usize {
        self.analysis.module.tokens[token].span.start
    }

    fn replace(&mut self, start: usize, end: usize, text: impl Into<String>) {
        self.edits.push((start, end, text.into()));
    }

    fn lower_version(&mut self, options: &Options) {
        let module = self.analysis.module;
        let (Some(at), Some(newest)) = (module.version, options.newest) else {
            return;
        };
        let (major, minor) = module.text(at).split_once('.').unwrap_or((module.text(at), "0"));
        let own = (major.parse().unwrap_or(0), minor.parse().unwrap_or(0));
        if own > newest {
            self.replace(self.before(at), self.after(at), format!("{}.{}", newest.0, newest.1));
        }
    }

    fn add_parameters(&mut self, function: &Function) {
        let module = self.analysis.module;
        let name = module.text(function.name);
        let added = if function.is_entry {
            format!(".param .align 4 .b8 {name}_{PREFIX}[{PARAMETER_BYTES}]")
        } else {
            let one = |k: usize| format!(".param .b32 {name}_{PREFIX}_{k}");
            (0..6).map(one).collect::<Vec<_>>().join(",\n\t")
        };
        match function.parameters {
            Some((open, close)) => {
                let comma = if close == open + 1 { "" } else { "," };
                let place = self.after(close - 1);
                self.replace(place, place, format!("{comma}\n\t{added}"));
            }
            None => {
                let place = self.after(function.name);
                self.replace(place, place, format!("(\n\t{added}\n)"));
            }
        }
    }

    /// An instruction that loads number k of the six into its register.
    fn load(&self, function: &Function, k: usize) -> String {
        let name = self.analysis.module.text(function.name);
        if function.is_entry {
            format!("ld.param.u32 \t%pk_slice_{k}, [{name}_{PREFIX}+{}];\n\t", 4 * k)
        } else {
            format!("ld.param.u32 \t%pk_slice_{k}, [{name}_{PREFIX}_{k}];\n\t")
        }
    }

    fn replace_read(&mut self, function: &Function, instruction: Instruction, read: &Read) {
        let (axis, token) = (read.axis, read.token);
        let number = if read.whole { 3 + axis } else { axis };
        let mut text = self.load(function, number);
        let mut result = number;
        if !read.whole {
            result = 6 + axis;
            let letter = ["x", "y", "z"][axis];
            let _ = write!(text, "mov.u32 \t%pk_slice_{result}, %ctaid.{letter};\n\t");
            let _ = write!(
                text,
                "add.u32 \t%pk_slice_{result}, %pk_slice_{result}, %pk_slice_{axis};\n\t"
            );
        }
        let place = self.before(instruction.guard);
        self.replace(place, place, text);
        self.replace(self.before(token), self.after(token + 1), format!("%pk_slice_{result}"));
    }

    /// The six numbers as further arguments of a call.
    fn pass_on(&mut self, function: &Function, call: &Call) {
        let loads: String = (0..6).map(|k| self.load(function, k)).collect();
        let place = self.before(call.instruction.guard);
        self.replace(place, place, loads);
        let registers = (0..6).map(|k| format!("%pk_slice_{k}")).collect::<Vec<_>>().join(", ");
        match call.arguments {
            Some((open, close)) => {
                let comma = if close == open + 1 { "" } else { ", " };
                let place = self.before(close);
                self.replace(place, place, format!("{comma}{registers}"));
            }
            None => {
                let place = self.after(call.target);
                self.replace(place, place, format!(", ({registers})"));
            }
        }
    }

    fn text(mut self) -> String {
        self.edits.sort_by_key(|edit| (edit.0, edit.1)); // stable: what is put in at one place keeps its order
        let source = self.analysis.module.source;
        let mut text = String::with_capacity(source.len() + 64 * self.edits.len());
        let mut at = 0;
        for (start, end, new) in &self.edits {
            text.push_str(&source[at..*start]);
            text.push_str(new);
            at = *end;
        }
        text.push_str(&source[at..]);
        text
    }
}
