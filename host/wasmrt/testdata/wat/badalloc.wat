;; Returns room outside of its memory.
(module
  (memory (export "memory") 1)
  (func (export "datalink_abi_1"))
  (func (export "alloc") (param i32) (result i32) (i32.const 0x7fffffff))
  (func (export "call") (param i32 i32 i32) (result i64) (i64.const 0x800000001)))
