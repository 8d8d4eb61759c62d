"""The REST operations, one module a family; `table` lists them all."""
