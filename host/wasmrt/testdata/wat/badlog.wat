;; Hands the host a pointer outside of its memory.
(module
  (import "datalink" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 256)
  (func (export "datalink_abi_1"))
  (func (export "alloc") (param i32) (result i32) (i32.const 0x800000))
  (func (export "call") (param i32 i32 i32) (result i64)
    (if (i32.eq (local.get 0) (i32.const 24))
      (then (call $log (i32.const 0) (i32.const 0xfffffff0) (i32.const 4096))))
    (i64.const 0x800000001)))
