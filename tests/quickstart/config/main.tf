# The quickstart: a small fleet of services, each with a name, a port, a secret and a configuration file, and one inventory
# that lists them all. Everything here is done by providers that are part of the executable.

terraform {
  required_version = ">= 1.5"

  required_providers {
    local  = { source = "hashicorp/local", version = "~> 2.4" }
    null   = { source = "hashicorp/null", version = ">= 3.0" }
    random = { source = "hashicorp/random", version = "~> 3.5" }
  }
}

variable "environment" {
  description = "What the fleet is for; becomes part of every name."
  type        = string
  default     = "demo"

  validation {
    condition     = can(regex("^[a-z]+$", var.environment))
    error_message = "The environment must be one word of lower-case letters."
  }
}

variable "services" {
  description = "The services, by name."
  type = map(object({
    port     = number
    replicas = optional(number, 1)
    tags     = optional(set(string), [])
  }))
  default = {
    api    = { port = 8080, replicas = 3, tags = ["public", "http"] }
    worker = { port = 9090 }
  }
}

locals {
  directory = "${path.root}/out"
}

# One name for the whole fleet, stable until the environment changes.
resource "random_pet" "fleet" {
  length  = 2
  prefix  = var.environment
  keepers = { environment = var.environment }
}

module "service" {
  source   = "./modules/service"
  for_each = var.services

  fleet     = random_pet.fleet.id
  name      = each.key
  settings  = each.value
  directory = local.directory
}

module "inventory" {
  source = "./modules/inventory"

  fleet    = random_pet.fleet.id
  path     = "${local.directory}/inventory.json"
  services = { for name, service in module.service : name => service.address }
}

# Runs a program when the inventory changes.
resource "null_resource" "announce" {
  triggers = { checksum = module.inventory.checksum }

  provisioner "local-exec" {
    command     = "echo \"the fleet $FLEET is ready\""
    environment = { FLEET = random_pet.fleet.id }
  }
}

output "fleet" {
  value = random_pet.fleet.id
}

output "addresses" {
  description = "Where each service listens."
  value       = { for name, service in module.service : name => service.address }
}

output "tokens" {
  description = "The secret of each service; hidden unless asked for by name."
  value       = { for name, service in module.service : name => service.token }
  sensitive   = true
}
