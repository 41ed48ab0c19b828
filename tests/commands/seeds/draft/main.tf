# Blocks as one writes them before an import: without arguments, or with references to what is not there yet.
resource "random_string" "s" {
}

resource "random_string" "refers" {
  length  = local.none
  keepers = { i = random_integer.i.id }
}

resource "random_integer" "i" {
  min = random_integer.none.result
}

resource "random_string" "wrong" {
  length = "long"
  colour = "red"
}

output "s" {
  value = random_string.s.result
}
