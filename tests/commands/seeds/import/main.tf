resource "random_string" "s" {
  length = 3
}

resource "random_string" "many" {
  count  = 2
  length = random_string.s.length
}

resource "null_resource" "n" {}

variable "v" {
  default = 1
}

module "m" {
  source = "./m"
}

output "o" {
  value = random_string.s.result
}
