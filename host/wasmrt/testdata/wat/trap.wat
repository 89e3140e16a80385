;; Traps in Transform.
(module
  (memory (export "memory") 256)
  (func (export "datalink_abi_1"))
  (func (export "alloc") (param i32) (result i32) (i32.const 0x800000))
  (func $deep (unreachable))
  (func (export "call") (param i32 i32 i32) (result i64)
    (if (i32.eq (local.get 0) (i32.const 24)) (then (call $deep)))
    (i64.const 0x800000001)))
