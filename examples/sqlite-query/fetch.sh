#!/bin/sh
# Brings SQLite's amalgamation (public domain) here: the Go module that carries
# it is one that every Go proxy has. The file is held to its digest.
set -eu
cd "$(dirname "$0")"
dir=$(go mod download -json github.com/mattn/go-sqlite3@v1.14.53 | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p')
mkdir -p sqlite
cp "$dir/sqlite3-binding.c" sqlite/sqlite3.c.new
chmod u+w sqlite/sqlite3.c.new
echo "758343f1464f3ee8c7c601d5b0cde415b52dcdf43a44ed884a62d19ec416e824  sqlite/sqlite3.c.new" | sha256sum -c - >/dev/null || { rm sqlite/sqlite3.c.new; echo "fetch.sh: this is not the file that was meant" >&2; exit 1; }
mv sqlite/sqlite3.c.new sqlite/sqlite3.c
