;; Takes all the table space it can get, which is not of its memory.
(module
  (memory (export "memory") 256)
  (table $t 1 funcref)
  (func (export "datalink_abi_1"))
  (func (export "alloc") (param i32) (result i32) (i32.const 0x800000))
  (func (export "call") (param i32 i32 i32) (result i64)
    (if (i32.ne (local.get 0) (i32.const 24)) (then (return (i64.const 0x800000001))))
    (loop $more
      (br_if $more (i32.ne (i32.const -1) (table.grow $t (ref.null func) (i32.const 0x800000)))))
    (unreachable)))
