;; A module that changes its table: each call finds it as it was.
(module
  (table 2 funcref)
  (elem (i32.const 0) $x $y)
  (elem declare func $y)
  (memory (export "memory") 1)
  (func (export "elf_alloc") (param i32) (result i32) (i32.const 1024))
  (func $x (result i64) (i64.const 0x1000000002))
  (func $y (result i64) (i64.const 0x2000000002))
  (func (export "elf_call") (param i32 i32 i32 i32) (result i64)
    (call_indirect (result i64) (i32.const 0))
    (table.set 0 (i32.const 0) (ref.func $y)))
  (data (i32.const 16) "\00x")
  (data (i32.const 32) "\00y"))
