;; Takes all the memory it can get and writes to it, then goes on for ever.
(module
  (memory (export "memory") 256)
  (func (export "datalink_abi_1"))
  (func (export "alloc") (param i32) (result i32) (i32.const 0x800000))
  (func (export "call") (param i32 i32 i32) (result i64)
    (local $at i32)
    (if (i32.ne (local.get 0) (i32.const 24)) (then (return (i64.const 0x800000001))))
    (loop $more
      (local.set $at (memory.grow (i32.const 128)))
      (if (i32.ne (local.get $at) (i32.const -1))
        (then
          (memory.fill (i32.shl (local.get $at) (i32.const 16)) (i32.const 1) (i32.const 0x800000))
          (br $more))))
    (unreachable)))
