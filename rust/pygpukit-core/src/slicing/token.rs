//! Tokens of PTX: words, dotted words, numbers, strings and single signs, each with its place in the text.

use std::ops::Range;

use super::reason::{Reason, Unsliceable};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An identifier, a register (%r1), a label ($L__BB0_2) or the first part of an opcode.
    Word,
    /// ".u32", ".entry", a texture's ".2d": the dot belongs to it.
    Dotted,
    Number,
    Text,
    Sign(u8),
}

#[derive(Clone, Debug)]
pub struct Token {
    pub kind: Kind,
    pub span: Range<usize>,
    pub line: u32,
}

impl Token {
    pub fn is(&self, sign: u8) -> bool {
        self.kind == Kind::Sign(sign)
    }
}

fn starts_word(c: u8) -> bool {
    c.is_ascii_alphabetic() || matches!(c, b'_' | b'$' | b'%')
}

fn in_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'_' | b'$')
}

const SIGNS: &[u8] = b";,(){}[]<>=+-!@:*&|^~/?";

pub fn tokens(source: &str) -> Result<Vec<Token>, Unsliceable> {
    let bytes = source.as_bytes();
    let at = |i: usize| bytes.get(i).copied().unwrap_or(0);
    let end_of = |from: usize, fits: fn(u8) -> bool| {
        let rest = bytes.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|&&c| fits(c)).count()
    };
    let mut lexed = Vec::new();
    let (mut i, mut line) = (0, 1u32);
    while i < bytes.len() {
        let start = i;
        let (kind, end) = match at(i) {
            b'\n' => {
                line += 1;
                i += 1;
                continue;
            }
            b' ' | b'\t' | b'\r' => {
                i += 1;
                continue;
            }
            b'/' if at(i + 1) == b'/' => {
                i = end_of(i, |c| c != b'\n');
                continue;
            }
            b'/' if at(i + 1) == b'*' => {
                let Some(length) = source.as_bytes()[i + 2..].windows(2).position(|pair| pair == b"*/") else {
                    return Err(malformed(line, "a comment is not closed"));
                };
                let end = i + 2 + length + 2;
                line += bytes[i..end].iter().filter(|&&c| c == b'\n').count() as u32;
                i = end;
                continue;
            }
            b'"' => {
                let mut end = i + 1;
                while end < bytes.len() && at(end) != b'"' {
                    end += if at(end) == b'\\' { 2 } else { 1 };
                }
                if end >= bytes.len() {
                    return Err(malformed(line, "a string is not closed"));
                }
                (Kind::Text, end + 1)
            }
            b'.' if starts_word(at(i + 1)) || at(i + 1).is_ascii_digit() => (Kind::Dotted, end_of(i + 1, in_word)),
            c if starts_word(c) => (Kind::Word, end_of(i + 1, in_word)),
            c if c.is_ascii_digit() => (Kind::Number, end_of(i + 1, |c| in_word(c) || c == b'.')),
            c if SIGNS.contains(&c) => (Kind::Sign(c), i + 1),
            c => {
                let shown = (c as char).escape_default();
                return Err(malformed(line, &format!("the character '{shown}' has no meaning here")));
            }
        };
        let span = start..end;
        let lines = bytes[span.clone()].iter().filter(|&&c| c == b'\n').count() as u32;
        lexed.push(Token { kind, span, line });
        line += lines;
        i = end;
    }
    Ok(lexed)
}

pub fn malformed(line: u32, text: &str) -> Unsliceable {
    Unsliceable::new(Reason::Malformed, "", line, text)
}
