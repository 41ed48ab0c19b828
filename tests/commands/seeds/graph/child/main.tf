variable "name" {}

resource "terraform_data" "inner" {
  input = var.name
}

data "terraform_remote_state" "other" {
  count   = 0
  backend = "local"

  config = {
    path = terraform_data.inner.id
  }
}

output "id" {
  value = terraform_data.inner.id
}
