;; Refused: elf_call is not there.
(module
  (memory (export "memory") 1)
  (func (export "elf_alloc") (param i32) (result i32) (i32.const 1024))
  (data (i32.const 16) "\00x"))
