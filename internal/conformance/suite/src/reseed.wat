;; elf_reseed gets random bytes, 32 or more, before calls that start from an image; this answers whether a call has seen some, and the first.
(module
  (memory (export "memory") 1)
  (global $seeded (mut i32) (i32.const 0))
  (func (export "elf_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "elf_reseed") (param i32 i32)
    (if (i32.ge_u (local.get 1) (i32.const 32)) (then
      (i64.store (i32.const 17) (i64.or (i64.and (i64.load (local.get 0)) (i64.const 0x0f0f0f0f0f0f0f0f)) (i64.const 0x6060606060606060))))))
  (func (export "elf_call") (param i32 i32 i32 i32) (result i64) (i64.const 0x1000000009))
  (data (i32.const 16) "\00unseeded"))
