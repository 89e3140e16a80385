;; Never returns from its initialisation.
(module
  (memory (export "memory") 1)
  (func (export "_initialize") (loop $forever (br $forever)))
  (func (export "datalink_abi_1"))
  (func (export "alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "call") (param i32 i32 i32) (result i64) (i64.const 0x800000001)))
