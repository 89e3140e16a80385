;; Says the same line without end.
(module
  (import "datalink" "log" (func $log (param i32 i32 i32)))
  (import "datalink" "metric" (func $metric (param i32 i32 i32 f64)))
  (memory (export "memory") 256)
  (data (i32.const 64) "la")
  (func (export "datalink_abi_1"))
  (func (export "alloc") (param i32) (result i32) (i32.const 0x800000))
  (func (export "call") (param i32 i32 i32) (result i64)
    (if (i32.eq (local.get 0) (i32.const 24))
      (then (loop $forever
        (call $log (i32.const 0) (i32.const 64) (i32.const 2))
        (call $metric (i32.const 0) (i32.const 64) (i32.const 2) (f64.const 1))
        (br $forever))))
    (i64.const 0x800000001)))
