//! Text that many records share: ids and names of tasks and partitions.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// A copy is one count, whatever the length, and none where there is no text.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(Option<Arc<str>>); // never Some of an empty text

impl Name {
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}

/// As its text: tables of names are asked by it.
impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name((!text.is_empty()).then(|| text.into()))
    }
}

impl From<String> for Name {
    fn from(text: String) -> Name {
        Name((!text.is_empty()).then(|| text.into()))
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, text: &str) -> bool {
        self.as_str() == text
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, text: &&str) -> bool {
        self.as_str() == *text
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_table_of_names_is_asked_by_text() {
        let names: HashSet<Name> = ["", "a"].map(Name::from).into();
        assert!(names.contains("") && names.contains("a") && !names.contains("b"));
        assert_eq!(Name::from(String::new()), Name::default());
        assert_eq!((Name::default().as_str(), &*Name::from("a")), ("", "a"));
    }
}
