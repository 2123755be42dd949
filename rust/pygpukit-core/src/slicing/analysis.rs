//! What the functions of a module do that matters for slicing: reads of the block's place, calls, and what forbids it.

use std::collections::{BTreeSet, HashMap};

use super::parse::{Function, Instruction, Module};
use super::reason::{Reason, Unsliceable};
use super::rewrite::PREFIX;
use super::token::Kind;

/// A read of %ctaid (whole: false) or %nctaid, by the token of its name; the axis is in the next token.
pub struct Read {
    pub token: usize,
    pub whole: bool,
    pub axis: usize,
}

pub struct Call {
    pub instruction: Instruction,
    pub target: usize,
    /// The parentheses of the arguments.
    pub arguments: Option<(usize, usize)>,
}

/// What one function does that matters here.
#[derive(Default)]
pub struct Uses {
    pub reads: Vec<(Instruction, Read)>,
    pub calls: Vec<Call>,
    refusal: Option<(Reason, usize, String)>,
    /// Names that stand in instructions, other than targets of calls.
    names: Vec<usize>,
}

pub struct Analysis<'m> {
    pub module: &'m Module<'m>,
    pub uses: Vec<Uses>,
    /// By name: all declarations and definitions.
    named: HashMap<&'m str, Vec<usize>>,
}

/// Functions of the driver that do not depend on the block's place. (A failed assertion names the block of the slice.)
const HARMLESS_EXTERN: [&str; 4] = ["vprintf", "__assertfail", "malloc", "free"];
const LAUNCHING: [&str; 4] = [
    "cudaLaunch",
    "cudaGetParameterBuffer",
    "cudaDeviceSynchronize",
    "__cudaCDP",
];
/// Read-only tables and texts that compilers add.
const COMPILER_NAMES: [&str; 3] = ["$str", "__unnamed_", "__cudart_"];
const CLUSTER_DIRECTIVES: [&str; 4] = [
    ".reqnctapercluster",
    ".explicitcluster",
    ".maxclusterrank",
    ".blocksareclusters",
];

impl<'m> Analysis<'m> {
    pub fn new(module: &'m Module<'m>) -> Result<Analysis<'m>, Unsliceable> {
        for (at, token) in module.tokens.iter().enumerate() {
            if token.kind == Kind::Word && module.text(at).contains(PREFIX) {
                let text = format!("{} is a name of a sliced module", module.text(at));
                return Err(Unsliceable::new(Reason::AlreadySliced, "", token.line, text));
            }
        }
        let mut named: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, function) in module.functions.iter().enumerate() {
            named.entry(module.text(function.name)).or_default().push(at);
        }
        let mut analysis = Analysis {
            module,
            uses: Vec::new(),
            named,
        };
        analysis.uses = module.functions.iter().map(|f| analysis.uses_of(f)).collect();
        Ok(analysis)
    }

    pub fn entry(&self, name: &str) -> Option<usize> {
        let functions = &self.module.functions;
        let symbols = self.named.get(name)?.iter().copied();
        symbols
            .into_iter()
            .find(|&at| functions[at].is_entry && functions[at].body.is_some())
    }

    fn uses_of(&self, function: &Function) -> Uses {
        let mut uses = Uses::default();
        for at in function.header.clone() {
            if CLUSTER_DIRECTIVES.contains(&self.module.text(at)) {
                let text = format!("{} gives it clusters", self.module.text(at));
                uses.refusal = Some((Reason::Cluster, at, text));
            }
        }
        for &instruction in &function.instructions {
            let opcode = self.module.text(instruction.opcode);
            if uses.refusal.is_none() {
                uses.refusal = self.refused_opcode(instruction, opcode);
            }
            if opcode == "call" {
                self.add_call(instruction, &mut uses);
            } else {
                self.add_operands(instruction, opcode, &mut uses);
            }
        }
        uses
    }

    fn refused_opcode(&self, instruction: Instruction, opcode: &str) -> Option<(Reason, usize, String)> {
        let reason = match opcode {
            "griddepcontrol" => Reason::ProgrammaticLaunch,
            "clusterlaunchcontrol" | "mapa" | "getctarank" => Reason::Cluster,
            "barrier" if self.module.text(instruction.opcode + 1) == ".cluster" => Reason::Cluster,
            _ => return None,
        };
        Some((reason, instruction.opcode, format!("the instruction {opcode}")))
    }

    /// Reads of special registers, and names.
    fn add_operands(&self, instruction: Instruction, opcode: &str, uses: &mut Uses) {
        let module = self.module;
        for at in instruction.opcode + 1..instruction.end {
            if module.tokens[at].kind != Kind::Word {
                continue;
            }
            let word = module.text(at);
            if !word.starts_with('%') {
                uses.names.push(at);
                continue;
            }
            let refused = match word {
                "%ctaid" | "%nctaid" => match self.axis(instruction, opcode, at) {
                    Some(axis) => {
                        let whole = word == "%nctaid";
                        let read = Read { token: at, whole, axis };
                        uses.reads.push((instruction, read));
                        continue;
                    }
                    None => Reason::BlockIndexRead,
                },
                "%gridid" => Reason::GridId,
                "%nclusterid" | "%clusterid" | "%is_explicit_cluster" => Reason::Cluster,
                _ if word.starts_with("%cluster_") => Reason::Cluster,
                // The workspace of a grid-wide barrier is in %envreg1 and %envreg2.
                _ if word.strip_prefix("%envreg").is_some_and(|n| n.parse::<u32>().is_ok()) => Reason::GridSync,
                _ => continue,
            };
            if uses.refusal.is_none() {
                uses.refusal = Some((refused, at, format!("it reads {word}")));
            }
        }
    }

    /// The axis of a 32-bit read by mov or cvt; None for anything else.
    fn axis(&self, instruction: Instruction, opcode: &str, at: usize) -> Option<usize> {
        let module = self.module;
        let axis = [".x", ".y", ".z"]
            .iter()
            .position(|&axis| module.text(at + 1) == axis)?;
        let mut types = instruction.opcode + 1;
        while module.tokens[types].kind == Kind::Dotted {
            types += 1;
        }
        let of_source = module.text(types - 1);
        let fits = matches!(opcode, "mov" | "cvt") && matches!(of_source, ".u32" | ".s32" | ".b32");
        // The source operand is the last one.
        (fits && at + 2 == instruction.end).then_some(axis)
    }

    fn add_call(&self, instruction: Instruction, uses: &mut Uses) {
        let module = self.module;
        let sign = |at: usize, sign: u8| module.tokens[at].is(sign);
        // Within the instruction: its semicolon ends every search.
        let closing = |open: usize| (open..instruction.end).find(|&at| sign(at, b')'));
        let mut at = instruction.opcode + 1;
        while module.tokens[at].kind == Kind::Dotted {
            at += 1;
        }
        if sign(at, b'(') {
            at = closing(at).map_or(instruction.end, |close| close + 1);
            at += usize::from(sign(at, b','));
        }
        let target = at;
        let mut arguments = None;
        let known = module.tokens[target].kind == Kind::Word && self.named.contains_key(module.text(target));
        if known {
            at += 1;
            if sign(at, b',') && sign(at + 1, b'(') {
                if let Some(close) = closing(at + 1) {
                    arguments = Some((at + 1, close));
                    at = close + 1;
                }
            }
        }
        if !known || at != instruction.end {
            let text = format!("it calls {}, which is no function of the module", module.text(target));
            uses.refusal.get_or_insert((Reason::IndirectCall, target, text));
            return;
        }
        uses.calls.push(Call {
            instruction,
            target,
            arguments,
        });
    }

    /// Functions that `entry` may run, itself first.
    fn reachable(&self, entry: usize) -> Vec<usize> {
        let mut symbols = vec![entry];
        let mut next = 0;
        while next < symbols.len() {
            for call in &self.uses[symbols[next]].calls {
                for &callee in &self.named[self.module.text(call.target)] {
                    if !symbols.contains(&callee) {
                        symbols.push(callee);
                    }
                }
            }
            next += 1;
        }
        symbols
    }

    pub fn check(&self, entry: usize, host_variables: &BTreeSet<String>) -> Result<(), Unsliceable> {
        let module = self.module;
        let refuse = |reason, function: usize, at: usize, text: String| {
            let name = module.text(module.functions[function].name);
            Err(Unsliceable::new(reason, name, module.line(at), text))
        };
        for function in self.reachable(entry) {
            let uses = &self.uses[function];
            if let Some((reason, at, text)) = &uses.refusal {
                return refuse(*reason, function, *at, text.clone());
            }
            for call in &uses.calls {
                let name = module.text(call.target);
                let defined = self.named[name].iter().any(|&at| module.functions[at].body.is_some());
                if LAUNCHING.iter().any(|start| name.starts_with(start)) {
                    let text = format!("it calls {name}, which launches kernels or waits for them");
                    return refuse(Reason::DynamicParallelism, function, call.target, text);
                }
                if !defined && !HARMLESS_EXTERN.contains(&name) {
                    let text = format!("it calls {name}, which is not in the module");
                    return refuse(Reason::ExternCall, function, call.target, text);
                }
            }
            for &at in &uses.names {
                if let Some(space) = self.variable(module.text(at), host_variables) {
                    let text = format!(
                        "it uses the {space} variable {}, of which the sliced variant would have a copy of its own",
                        module.text(at)
                    );
                    return refuse(Reason::ModuleVariable, function, at, text);
                }
            }
        }
        Ok(())
    }

    /// The space of a module variable whose value may change; None for constants and for names that are none.
    fn variable(&self, name: &str, host_variables: &BTreeSet<String>) -> Option<&'m str> {
        let module = self.module;
        let variable = module.variables.iter().find(|v| module.text(v.name) == name)?;
        let space = module.text(variable.space);
        let constant = match space {
            ".const" => !host_variables.contains(name),
            _ => COMPILER_NAMES.iter().any(|start| name.starts_with(start)),
        };
        let of_constants = variable
            .initialiser
            .iter()
            .all(|&at| self.variable_is_itself_constant(module.text(at), name));
        (!constant || !of_constants).then_some(space)
    }

    /// A word of an initialiser that leads to no changing variable: not a variable, or the one that it initialises.
    fn variable_is_itself_constant(&self, word: &str, of: &str) -> bool {
        word == of || !self.module.variables.iter().any(|v| self.module.text(v.name) == word)
    }

    /// Names of functions that need to know the block's place: they read it, or call one that does.
    pub fn placed(&self) -> BTreeSet<&'m str> {
        let module = self.module;
        let mut placed = BTreeSet::new();
        loop {
            let before = placed.len();
            for (function, uses) in module.functions.iter().zip(&self.uses) {
                let needs = !uses.reads.is_empty() || uses.calls.iter().any(|c| placed.contains(module.text(c.target)));
                if needs {
                    placed.insert(module.text(function.name));
                }
            }
            if placed.len() == before {
                return placed;
            }
        }
    }
}
