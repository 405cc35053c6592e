;; Refused: elf_call is no function.
(module
  (memory (export "memory") 1)
  (func (export "elf_alloc") (param i32) (result i32) (i32.const 1024))
  (global (export "elf_call") i32 (i32.const 0))
  (data (i32.const 16) "\00x"))
