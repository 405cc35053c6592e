;; Refused: elf_call has another type.
(module
  (memory (export "memory") 1)
  (func (export "elf_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "elf_call") (param i32 i32) (result i64) (i64.const 0))
  (data (i32.const 16) "\00x"))
