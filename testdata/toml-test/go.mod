module tai/testdata/toml-test

go 1.26.0

require github.com/toml-lang/toml-test/v2 v2.2.0

require github.com/BurntSushi/toml v1.6.0 // indirect
