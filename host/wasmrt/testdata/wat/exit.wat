;; Exits instead of answering.
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 256)
  (func (export "datalink_abi_1"))
  (func (export "alloc") (param i32) (result i32) (i32.const 0x800000))
  (func (export "call") (param i32 i32 i32) (result i64)
    (if (i32.eq (local.get 0) (i32.const 24)) (then (call $exit (i32.const 7))))
    (i64.const 0x800000001)))
