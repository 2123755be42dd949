//! The file format of one cache entry, and the digest that makes keys.
//!
//! Little endian: magic (8 bytes), format version (u32), key (32), payload length (u64), payload, BLAKE3 of all before it (32).

use std::fmt;

/// A content key: the BLAKE3 digest of everything that decides the payload.
pub type Key = [u8; 32];

const MAGIC: [u8; 8] = *b"PGKCACHE";
const VERSION: u32 = 1;
pub const HEADER_BYTES: usize = 8 + 4 + 32 + 8;
pub const DIGEST_BYTES: usize = 32;

/// What is wrong with a file that should be an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    Length,
    Magic,
    Version,
    Key,
    Digest,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Damage::Length => "its length is not the one that it states",
            Damage::Magic => "it is not a cache entry",
            Damage::Version => "it has another format version",
            Damage::Key => "it belongs to another key",
            Damage::Digest => "its digest does not match",
        })
    }
}

/// Key and payload of a whole entry in memory, verified: what an archive of entries holds.
pub fn open(bytes: &[u8]) -> Result<(Key, &[u8]), Damage> {
    let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(Damage::Length)?;
    let (payload, digest) = rest.split_last_chunk::<DIGEST_BYTES>().ok_or(Damage::Length)?;
    let mut key = [0; 32];
    key.copy_from_slice(&header[12..44]);
    payload_bytes(header, &key, bytes.len() as u64)?;
    verify(header, payload, digest).map(|()| (key, payload))
}

/// BLAKE3 of the parts, each preceded by its length as u64, so that no two lists of parts share a key by concatenation.
pub fn digest<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> Key {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        let part = part.as_ref();
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    *hasher.finalize().as_bytes()
}

/// Header and digest of an entry; the file is header, payload, digest.
pub fn seal(key: &Key, payload: &[u8]) -> ([u8; HEADER_BYTES], [u8; DIGEST_BYTES]) {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..44].copy_from_slice(key);
    header[44..].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    (header, file_digest(&header, payload))
}

/// The payload length that a header states, if it can be the header of a file of this size under this key. Nothing has to be
/// allocated before this check.
pub fn payload_bytes(header: &[u8; HEADER_BYTES], key: &Key, file_bytes: u64) -> Result<usize, Damage> {
    if header[..8] != MAGIC {
        return Err(Damage::Magic);
    }
    if header[8..12] != VERSION.to_le_bytes() {
        return Err(Damage::Version);
    }
    if header[12..44] != *key {
        return Err(Damage::Key);
    }
    let mut length = [0; 8];
    length.copy_from_slice(&header[44..]);
    let stated = u64::from_le_bytes(length);
    match stated.checked_add((HEADER_BYTES + DIGEST_BYTES) as u64) {
        Some(total) if total == file_bytes => usize::try_from(stated).map_err(|_| Damage::Length),
        _ => Err(Damage::Length),
    }
}

pub fn verify(header: &[u8; HEADER_BYTES], payload: &[u8], stored: &[u8]) -> Result<(), Damage> {
    if file_digest(header, payload) == stored {
        Ok(())
    } else {
        Err(Damage::Digest)
    }
}

fn file_digest(header: &[u8; HEADER_BYTES], payload: &[u8]) -> [u8; DIGEST_BYTES] {
    *blake3::Hasher::new()
        .update(header)
        .update(payload)
        .finalize()
        .as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_separates_parts() {
        let one = digest([b"ab".as_slice(), b"c".as_slice()]);
        assert_ne!(one, digest([b"a".as_slice(), b"bc".as_slice()]));
        assert_ne!(one, digest([b"abc".as_slice()]));
        assert_ne!(digest([b"".as_slice()]), digest::<&[u8]>([]));
        assert_eq!(one, digest(["ab", "c"]));
    }

    #[test]
    fn header_states_key_and_length() {
        let key = digest(["k"]);
        let (header, stored) = seal(&key, b"payload");
        let total = (HEADER_BYTES + 7 + DIGEST_BYTES) as u64;
        assert_eq!(payload_bytes(&header, &key, total), Ok(7));
        assert_eq!(payload_bytes(&header, &key, total + 1), Err(Damage::Length));
        assert_eq!(payload_bytes(&header, &digest(["other"]), total), Err(Damage::Key));
        assert_eq!(verify(&header, b"payload", &stored), Ok(()));
        assert_eq!(verify(&header, b"paYload", &stored), Err(Damage::Digest));
        let mut huge = header;
        huge[44..].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(payload_bytes(&huge, &key, total), Err(Damage::Length));
    }
}
