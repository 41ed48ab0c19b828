terraform {
  required_providers {
    local  = { source = "hashicorp/local" }
    random = { source = "hashicorp/random" }
  }
}

variable "fleet" {
  type = string
}

variable "name" {
  type = string
}

variable "settings" {
  type = object({
    port     = number
    replicas = number
    tags     = set(string)
  })
}

variable "directory" {
  type = string
}

resource "random_password" "token" {
  length  = 24
  special = false
}

# The replicas of a service get consecutive ports.
resource "terraform_data" "replica" {
  count = var.settings.replicas
  input = {
    name = format("%s-%s-%02d", var.fleet, var.name, count.index + 1)
    port = var.settings.port + count.index
  }
}

resource "local_file" "settings" {
  filename        = "${var.directory}/${var.name}.conf"
  file_permission = "0644"
  content = templatefile("${path.module}/settings.tftpl", {
    fleet    = var.fleet
    name     = var.name
    replicas = terraform_data.replica[*].output
    tags     = var.settings.tags
  })
}

output "address" {
  value = "${var.fleet}-${var.name}:${var.settings.port}"
}

output "token" {
  value     = random_password.token.result
  sensitive = true
}
