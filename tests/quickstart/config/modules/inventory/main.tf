terraform {
  required_providers {
    local = { source = "hashicorp/local" }
  }
}

variable "fleet" {
  type = string
}

variable "path" {
  type = string
}

variable "services" {
  type = map(string)
}

resource "local_file" "inventory" {
  filename = var.path
  content  = jsonencode({ fleet = var.fleet, services = var.services })
}

# Reads back what was written, once it is there.
data "local_file" "inventory" {
  filename   = local_file.inventory.filename
  depends_on = [local_file.inventory]
}

output "checksum" {
  value = data.local_file.inventory.content_sha256
}
