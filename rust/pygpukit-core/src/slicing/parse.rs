//! PTX as far as slicing needs it: module variables, functions and their instructions, each by its tokens.

use std::ops::Range;

use super::reason::Unsliceable;
use super::token::{malformed, tokens, Kind, Token};

/// One instruction, by token indices: guard (the @, else the opcode), opcode, and the semicolon.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    pub guard: usize,
    pub opcode: usize,
    pub end: usize,
}

/// A declaration or definition of an entry or a device function, by token indices.
#[derive(Clone, Debug)]
pub struct Function {
    pub is_entry: bool,
    pub name: usize,
    /// The first token of the statement, before .visible and the like.
    pub start: usize,
    /// The parentheses around the parameters.
    pub parameters: Option<(usize, usize)>,
    /// Directives between the parameters and the body.
    pub header: Range<usize>,
    /// The braces; None for a declaration.
    pub body: Option<(usize, usize)>,
    pub instructions: Vec<Instruction>,
    /// The last token.
    pub end: usize,
}

/// A .global or .const variable: its space's token, its name's, and the words in its initialiser.
#[derive(Clone, Debug)]
pub struct Variable {
    pub space: usize,
    pub name: usize,
    pub initialiser: Vec<usize>,
}

#[derive(Clone, Debug)]
pub struct Module<'a> {
    pub source: &'a str,
    pub tokens: Vec<Token>,
    /// The number after .version.
    pub version: Option<usize>,
    pub functions: Vec<Function>,
    pub variables: Vec<Variable>,
}

impl<'a> Module<'a> {
    /// Never panics and never reads past the end, whatever the text.
    pub fn parse(source: &'a str) -> Result<Module<'a>, Unsliceable> {
        let tokens = tokens(source)?;
        let mut parser = Parser {
            module: Module {
                source,
                tokens,
                version: None,
                functions: Vec::new(),
                variables: Vec::new(),
            },
            at: 0,
        };
        parser.module()?;
        Ok(parser.module)
    }

    pub fn text(&self, token: usize) -> &'a str {
        &self.source[self.tokens[token].span.clone()]
    }

    pub fn line(&self, token: usize) -> u32 {
        self.tokens[token].line
    }

    /// Names of the entries that have a body, in their order.
    pub fn entries(&self) -> Vec<&'a str> {
        let entries = self.functions.iter().filter(|f| f.is_entry && f.body.is_some());
        entries.map(|f| self.text(f.name)).collect()
    }
}

struct Parser<'a> {
    module: Module<'a>,
    at: usize,
}

type Parsed<T> = Result<T, Unsliceable>;

const LINKING: [&str; 4] = [".visible", ".extern", ".weak", ".common"];
const DECLARATIONS: [&str; 11] = [
    ".reg",
    ".local",
    ".shared",
    ".param",
    ".const",
    ".global",
    ".tex",
    ".pragma",
    ".callprototype",
    ".branchtargets",
    ".calltargets",
];

impl Parser<'_> {
    fn kind(&self, token: usize) -> Option<Kind> {
        self.module.tokens.get(token).map(|t| t.kind)
    }

    fn is(&self, token: usize, sign: u8) -> bool {
        self.kind(token) == Some(Kind::Sign(sign))
    }

    fn text(&self, token: usize) -> &str {
        self.module
            .tokens
            .get(token)
            .map_or("", |t| &self.module.source[t.span.clone()])
    }

    fn wrong<T>(&self, expected: &str) -> Parsed<T> {
        let last = self.module.tokens.last();
        let line = self.module.tokens.get(self.at).or(last).map_or(1, |t| t.line);
        let actual = match self.text(self.at) {
            "" => "the end".to_string(),
            text => format!("{:?}", text.chars().take(40).collect::<String>()),
        };
        Err(malformed(line, &format!("{expected} is expected, not {actual}")))
    }

    fn expect(&mut self, sign: u8) -> Parsed<usize> {
        if !self.is(self.at, sign) {
            return self.wrong(&format!("'{}'", sign as char));
        }
        self.at += 1;
        Ok(self.at - 1)
    }

    fn word(&mut self, what: &str) -> Parsed<usize> {
        if self.kind(self.at) != Some(Kind::Word) {
            return self.wrong(what);
        }
        self.at += 1;
        Ok(self.at - 1)
    }

    /// From an opening sign to the token of its closing one.
    fn enclosed(&mut self, open: u8, close: u8) -> Parsed<usize> {
        self.expect(open)?;
        let mut depth = 1;
        while depth > 0 {
            match self.kind(self.at) {
                None => return self.wrong(&format!("'{}'", close as char)),
                Some(Kind::Sign(sign)) if sign == open => depth += 1,
                Some(Kind::Sign(sign)) if sign == close => depth -= 1,
                Some(_) => {}
            }
            self.at += 1;
        }
        Ok(self.at - 1)
    }

    /// Past the tokens on the line of the current one: the directives that no semicolon ends.
    fn rest_of_line(&mut self) {
        let line = self.module.tokens[self.at].line;
        while self.module.tokens.get(self.at).is_some_and(|t| t.line == line) {
            self.at += 1;
        }
    }

    /// To the semicolon that ends the statement.
    fn statement(&mut self) -> Parsed<usize> {
        let mut depth = 0;
        loop {
            match self.kind(self.at) {
                None => return self.wrong("';'"),
                Some(Kind::Sign(b';')) if depth == 0 => break,
                Some(Kind::Sign(b'{')) => depth += 1,
                Some(Kind::Sign(b'}')) if depth == 0 => return self.wrong("';'"),
                Some(Kind::Sign(b'}')) => depth -= 1,
                Some(_) => {}
            }
            self.at += 1;
        }
        self.at += 1;
        Ok(self.at - 1)
    }

    fn module(&mut self) -> Parsed<()> {
        while self.at < self.module.tokens.len() {
            let start = self.at;
            while LINKING.contains(&self.text(self.at)) {
                self.at += 1;
            }
            let directive = self.text(self.at).to_string();
            match directive.as_str() {
                ".entry" | ".func" => self.function(start)?,
                ".global" | ".const" => self.variables()?,
                ".shared" | ".tex" | ".pragma" | ".alias" => drop(self.statement()?),
                ".version" => {
                    self.at += 1;
                    if self.kind(self.at) != Some(Kind::Number) {
                        return self.wrong("the version of PTX");
                    }
                    self.module.version = Some(self.at);
                    self.at += 1;
                }
                ".target" | ".address_size" | ".file" | ".loc" | "@" => self.rest_of_line(),
                ".section" => {
                    self.at += 1;
                    while self.at < self.module.tokens.len() && !self.is(self.at, b'{') {
                        self.at += 1;
                    }
                    self.enclosed(b'{', b'}')?;
                }
                _ => return self.wrong("a directive of a module"),
            }
        }
        Ok(())
    }

    fn variables(&mut self) -> Parsed<()> {
        let space = self.at;
        let end = self.statement()?;
        let mut at = space + 1;
        loop {
            // A declarator: its name is the last word before "=", "[", "," or the end.
            let mut name = None;
            while at < end && !self.is(at, b'=') && !self.is(at, b',') {
                if self.kind(at) == Some(Kind::Word) && !self.is(at - 1, b'[') {
                    name = Some(at);
                }
                if self.is(at, b'(') {
                    while at < end && !self.is(at, b')') {
                        at += 1;
                    }
                }
                at += 1;
            }
            let Some(name) = name else {
                self.at = space;
                return self.wrong("a variable with a name");
            };
            let mut initialiser = Vec::new();
            let mut depth = 0;
            while at < end && (depth > 0 || !self.is(at, b',')) {
                match self.kind(at) {
                    Some(Kind::Word) => initialiser.push(at),
                    Some(Kind::Sign(b'{' | b'(')) => depth += 1,
                    Some(Kind::Sign(b'}' | b')')) => depth -= 1,
                    _ => {}
                }
                at += 1;
            }
            self.module.variables.push(Variable {
                space,
                name,
                initialiser,
            });
            if at >= end {
                return Ok(());
            }
            at += 1; // the comma
        }
    }

    fn function(&mut self, start: usize) -> Parsed<()> {
        let is_entry = self.text(self.at) == ".entry";
        self.at += 1;
        while self.kind(self.at) == Some(Kind::Dotted) {
            self.at += 1; // .attribute
            if self.is(self.at, b'(') {
                self.enclosed(b'(', b')')?;
            }
        }
        if self.is(self.at, b'(') {
            self.enclosed(b'(', b')')?; // what it returns
        }
        let name = self.word("the name of a function")?;
        let mut parameters = None;
        if self.is(self.at, b'(') {
            let open = self.at;
            parameters = Some((open, self.enclosed(b'(', b')')?));
        }
        let header = self.at;
        while !self.is(self.at, b'{') && !self.is(self.at, b';') {
            if self.text(self.at) == ".pragma" {
                self.statement()?;
            } else if matches!(self.kind(self.at), Some(Kind::Dotted | Kind::Number | Kind::Sign(b','))) {
                self.at += 1;
            } else {
                return self.wrong("the body of a function");
            }
        }
        let header = header..self.at;
        let (mut body, mut instructions) = (None, Vec::new());
        if self.is(self.at, b'{') {
            let open = self.at;
            body = Some((open, self.body(&mut instructions)?));
        } else {
            self.at += 1;
        }
        self.module.functions.push(Function {
            is_entry,
            name,
            start,
            parameters,
            header,
            body,
            instructions,
            end: self.at - 1,
        });
        Ok(())
    }

    /// From the opening brace to the closing one.
    fn body(&mut self, instructions: &mut Vec<Instruction>) -> Parsed<usize> {
        self.expect(b'{')?;
        let mut depth = 1;
        while depth > 0 {
            match self.kind(self.at) {
                Some(Kind::Sign(b'{')) => {
                    depth += 1;
                    self.at += 1;
                }
                Some(Kind::Sign(b'}')) => {
                    depth -= 1;
                    self.at += 1;
                }
                Some(Kind::Sign(b';')) => self.at += 1, // an empty statement
                Some(Kind::Word) if self.is(self.at + 1, b':') && !self.is(self.at + 2, b':') => self.at += 2,
                Some(Kind::Word | Kind::Sign(b'@')) => instructions.push(self.instruction()?),
                Some(Kind::Dotted) if matches!(self.text(self.at), ".loc" | ".file") => self.rest_of_line(),
                Some(Kind::Dotted) if DECLARATIONS.contains(&self.text(self.at)) => drop(self.statement()?),
                _ => return self.wrong("an instruction"),
            }
        }
        Ok(self.at - 1)
    }

    fn instruction(&mut self) -> Parsed<Instruction> {
        let guard = self.at;
        if self.is(self.at, b'@') {
            self.at += 1;
            if self.is(self.at, b'!') {
                self.at += 1;
            }
            self.word("a predicate")?;
        }
        let opcode = self.word("an opcode")?;
        let end = self.statement()?;
        Ok(Instruction { guard, opcode, end })
    }
}
