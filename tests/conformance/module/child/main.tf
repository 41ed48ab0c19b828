variable "name" {
  type = string
}

resource "terraform_data" "r" {
  input = var.name
}

output "name" {
  value = var.name
}

output "length" {
  value = length(var.name)
}

output "hidden" {
  value     = "h-${var.name}"
  sensitive = true
}

output "later" {
  value = terraform_data.r.id
}
