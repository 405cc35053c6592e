;; The call ends: elf_alloc gives a place outside the memory.
(module
  (memory (export "memory") 1)
  (func (export "elf_alloc") (param i32) (result i32) (i32.const 0xfffffff0))
  (func (export "elf_call") (param i32 i32 i32 i32) (result i64) (i64.const 0x1000000002))
  (data (i32.const 16) "\00x"))
