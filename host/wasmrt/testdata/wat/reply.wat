;; Answers Transform with what stands at 16 (address << 32 | length) and every
;; other call with an empty reply. Tests append a data section of their own.
(module
  (memory (export "memory") 256)
  (func (export "datalink_abi_1"))
  (func (export "alloc") (param i32) (result i32) (i32.const 0x800000))
  (func (export "call") (param i32 i32 i32) (result i64)
    (if (result i64) (i32.eq (local.get 0) (i32.const 24))
      (then (i64.load (i32.const 16)))
      (else (i64.const 0x800000001)))))
