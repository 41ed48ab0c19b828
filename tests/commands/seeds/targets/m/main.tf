variable "x" {}
resource "terraform_data" "in" { input = var.x }
output "o" { value = terraform_data.in.output }
