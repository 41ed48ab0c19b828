resource "terraform_data" "a" { input = "a" }
resource "terraform_data" "b" { input = terraform_data.a.output }
resource "terraform_data" "c" {
  count = 2
  input = "${terraform_data.b.output}${count.index}"
}
resource "terraform_data" "z" { input = "z" }
module "m" {
  source = "./m"
  count  = 2
  x      = terraform_data.a.output
}
output "a" { value = terraform_data.a.output }
output "c" { value = terraform_data.c[*].output }
output "z" { value = terraform_data.z.output }
