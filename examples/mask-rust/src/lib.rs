//! A DataLink transform as a WebAssembly module: it masks text columns.
//!
//! The module needs no crate beside the standard library: `block` reads and
//! writes the packed batch, `wire` the messages, as sdk/PROTOCOL.md lays them
//! out; this file is the ABI of sdk/wasm/ABI.md.

mod block;
mod json;
mod mask;
mod schema;
mod sha256;
mod wire;

use mask::Mask;
use std::cell::RefCell;
use wire::{Fault, Writer};

/// What the module keeps between calls. There is one thread.
struct State {
    input: Vec<u8>,
    output: Vec<u8>,
    mask: Option<Mask>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::new(State { input: Vec::new(), output: Vec::new(), mask: None });
}

#[cfg(target_arch = "wasm32")]
#[link(wasm_import_module = "datalink")]
extern "C" {
    fn log(level: i32, ptr: *const u8, len: u32);
}

/// Says a panic's message to the host before the module traps.
#[cfg(target_arch = "wasm32")]
#[no_mangle]
pub extern "C" fn _initialize() {
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        unsafe { log(8, text.as_ptr(), text.len() as u32) };
    }));
}

/// Its name says which version of the ABI the module speaks.
#[no_mangle]
pub extern "C" fn datalink_abi_1() {}

/// Returns room for a request of n bytes.
#[no_mangle]
pub extern "C" fn alloc(n: u32) -> *mut u8 {
    STATE.with(|s| {
        let input = &mut s.borrow_mut().input;
        input.resize(n as usize, 0);
        input.as_mut_ptr()
    })
}

/// Answers the call whose request lies in the room that alloc gave.
#[no_mangle]
pub extern "C" fn call(method: u32, _ptr: *const u8, len: u32) -> u64 {
    STATE.with(|s| {
        let s = &mut *s.borrow_mut();
        let request = &s.input[..len as usize];
        s.output.clear();
        s.output.push(0);
        if let Err(fault) = dispatch(method, request, &mut s.output, &mut s.mask) {
            s.output.clear();
            s.output.push(1);
            fault.append(&mut s.output);
        }
        (s.output.as_ptr() as usize as u64) << 32 | s.output.len() as u64
    })
}

/// JSON as sdk/manifest has it, with the JSON Schema of the options.
const MANIFEST: &str = include_str!("../manifest.json");

fn dispatch(method: u32, request: &[u8], out: &mut Vec<u8>, mask: &mut Option<Mask>) -> Result<(), Fault> {
    let mut w = Writer(out);
    match method {
        1 => w.bytes(1, MANIFEST.as_bytes()), // Describe
        2 => {
            // Configure
            let r = wire::configure(request)?;
            if r.role != b"transform" {
                return Err(Fault::new("unimplemented", "mask-rust is a transform only".into()));
            }
            match mask::configure(r.config) {
                Ok(m) => *mask = Some(m),
                Err(problems) => problems.iter().for_each(|p| w.problem(p)),
            }
        }
        3 | 7 => {}          // Check: there is no store; Ping
        6 => *mask = None,   // Close
        23 => {
            // TransformSchema
            let m = mask.as_mut().ok_or_else(Fault::unconfigured)?;
            let def = wire::field(request, 1)?;
            if !m.learn(def)? {
                w.uint(3, 1); // pass: not a table of ours
            }
        }
        24 => {
            // Transform
            let m = mask.as_mut().ok_or_else(Fault::unconfigured)?;
            let r = wire::transform(request)?;
            // The reply is field 1, whose length is known when the block is done:
            // its place is kept as a varint of five bytes.
            out.extend_from_slice(&[0x0a, 0x80, 0x80, 0x80, 0x80, 0]);
            let at = out.len();
            m.apply(r.block, &r.schemas, out)?;
            let mut n = out.len() - at;
            for i in 0..5 {
                let more = if i < 4 { 0x80 } else { 0 };
                out[at - 5 + i] = (n & 0x7f) as u8 | more;
                n >>= 7;
            }
        }
        _ => return Err(Fault::new("unimplemented", format!("method {} is none of a transform's", method))),
    }
    Ok(())
}
