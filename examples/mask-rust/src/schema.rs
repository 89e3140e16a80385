//! Definitions of schemas, as far as a mask needs them.

use crate::wire::{Cut, Reader};

pub const STRING: u8 = 13;

pub struct Column {
    pub name: Vec<u8>,
    pub kind: u8,
    /// Encoded width; 0 = preceded by its length.
    pub width: usize,
    pub length: u64,
}

pub struct Schema {
    pub id: u64,
    /// namespace.table
    pub name: Vec<u8>,
    pub columns: Vec<Column>,
    pub key: Vec<u64>,
}

/// Encoded widths by type number, see sdk/PROTOCOL.md.
const WIDTHS: [usize; 33] = [
    0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 0, 0, 0, 0, 4, 8, 8, 8, 2, 0, 0, 0, 0, 16, 0, 0, 0, 16, 12, 0, 0,
];

pub fn decode(def: &[u8]) -> Result<Schema, Cut> {
    let mut r = Reader::new(def);
    let id = r.uvarint()?;
    r.uvarint()?; // version
    r.bytes()?; // source
    let namespace = r.bytes()?;
    let table = r.bytes()?;
    r.byte()?; // flags
    let mut s = Schema { id, name: namespace.to_vec(), columns: Vec::new(), key: Vec::new() };
    if !namespace.is_empty() {
        s.name.push(b'.');
    }
    s.name.extend_from_slice(table);
    for _ in 0..r.uvarint()? {
        let name = r.bytes()?.to_vec();
        let kind = r.byte()?;
        r.byte()?; // element type
        r.bytes()?; // native type
        let length = r.uvarint()?;
        r.uvarint()?; // precision
        r.uvarint()?; // scale
        r.bytes()?; // charset
        r.bytes()?; // collation
        r.uvarint()?; // flags
        r.uvarint()?; // srid
        for _ in 0..r.uvarint()? {
            r.bytes()?; // label
        }
        r.bytes()?; // default
        let width = *WIDTHS.get(kind as usize).ok_or(Cut)?;
        s.columns.push(Column { name, kind, width, length });
    }
    for _ in 0..r.uvarint()? {
        s.key.push(r.uvarint()?);
    }
    Ok(s)
}
