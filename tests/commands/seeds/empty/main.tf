resource "terraform_data" "a" {
  input = terraform.workspace
}
