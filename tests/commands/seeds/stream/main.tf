variable "v" { default = "1" }
resource "terraform_data" "a" {
  input            = var.v
  triggers_replace = var.v
  provisioner "local-exec" { command = "echo hello" }
}
resource "terraform_data" "b" {
  for_each = toset(["k"])
  input    = terraform_data.a.output
}
module "m" {
  source = "./m"
  count  = 1
}
output "a" { value = terraform_data.a.output }
output "s" {
  value     = "x"
  sensitive = true
}
