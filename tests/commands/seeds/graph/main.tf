variable "length" {
  default = 2

  validation {
    condition     = var.length > 0
    error_message = "There must be one."
  }
}

variable "unused" {
  default = ""
}

locals {
  start = var.length
}

resource "terraform_data" "first" {
  input = local.start
}

resource "terraform_data" "many" {
  count = local.start
  input = terraform_data.first.output
}

module "below" {
  source = "./child"
  count  = 2
  name   = terraform_data.many[0].output
}

module "after" {
  source     = "./child"
  name       = "after"
  depends_on = [module.below]
}

resource "terraform_data" "replaced" {
  triggers_replace = local.start

  lifecycle {
    create_before_destroy = true
  }
}

resource "terraform_data" "whole" {
  input = module.below
}

check "lengths" {
  assert {
    condition     = length(terraform_data.many) == var.length
    error_message = "Some are missing."
  }
}

output "result" {
  value = [module.after.id, terraform_data.replaced.id]
}
