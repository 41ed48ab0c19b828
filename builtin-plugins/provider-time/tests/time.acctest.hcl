# Acceptance tests of the provider. `tests/commands` runs them, as an author does: monoform provider test .

config {
  variable "base" {
    type    = string
    default = "2020-02-29T12:00:00Z"
  }

  variable "tag" {
    type    = string
    default = "one"
  }
}

step "create" {
  config {
    resource "time_static" "base" {
      rfc3339  = var.base
      triggers = { tag = var.tag }
    }

    resource "time_static" "now" {}

    resource "time_offset" "year" {
      base_rfc3339 = time_static.base.rfc3339
      offset_years = 1
      offset_hours = -1
    }

    resource "time_rotating" "far" {
      rfc3339          = time_static.base.rfc3339
      rotation_rfc3339 = "9000-01-01T00:00:00Z"
    }

    resource "time_sleep" "short" {
      create_duration  = "1ms"
      destroy_duration = "1ms"
      triggers         = { far = time_rotating.far.id }
    }

    output "parts" {
      value = provider::time::rfc3339_parse(time_offset.year.rfc3339)
    }

    output "hours" {
      value = provider::time::duration_parse("1h30m").hours
    }

    output "epoch" {
      value = provider::time::unix_timestamp_parse(0).rfc3339
    }

    terraform {
      required_providers {
        time = {
          source = "hashicorp/time"
        }
      }
    }
  }
  actions = {
    "time_static.base"   = "create"
    "time_static.now"    = "create"
    "time_offset.year"   = "create"
    "time_rotating.far"  = "create"
    "time_sleep.short"   = "create"
  }
  planned "time_static.base" {
    values = { year = 2020, month = 2, day = 29, unix = 1582977600, id = "2020-02-29T12:00:00Z" }
  }
  planned "time_static.now" {
    unknown = ["rfc3339", "unix", "id"]
  }
  planned "time_sleep.short" {
    unknown = ["id"]
  }
  state "time_static.now" {
    matches = { rfc3339 = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z$" }
    null    = ["triggers"]
  }
  state "time_offset.year" {
    values = { rfc3339 = "2021-03-01T11:00:00Z", base_rfc3339 = "2020-02-29T12:00:00Z", hour = 11 }
    null   = ["offset_days"]
  }
  state "time_rotating.far" {
    values = { year = 9000, rfc3339 = "2020-02-29T12:00:00Z" }
  }
  assert {
    condition     = outputs.parts.weekday_name == "Monday" && outputs.parts.iso_week == 9
    error_message = "The parts are ${jsonencode(outputs.parts)}."
  }
  assert {
    condition     = outputs.hours == 1.5 && outputs.epoch == "1970-01-01T00:00:00Z"
    error_message = "The functions return ${outputs.hours} and ${outputs.epoch}."
  }
  import "time_static.base" {
    ignore = ["triggers"]
  }
  import "time_offset.year" {
    id = "${state["time_static.base"].rfc3339},1,,,-1,,"
  }
  import "time_rotating.far" {
    id = "${state["time_static.base"].rfc3339},9000-01-01T00:00:00Z"
  }
  import "time_sleep.short" {
    id     = "1ms,1ms"
    ignore = ["id", "triggers"]
  }
  import "time_static.base" {
    id           = "yesterday"
    expect_error = "(?i)import"
  }
}

step "another tag" {
  variables = { tag = "two" }
  actions = {
    "time_static.base"   = "replace"
    "time_static.now"    = "no-op"
    "time_offset.year"   = "no-op"
    "time_rotating.far"  = "no-op"
    "time_sleep.short"   = "no-op"
  }
}

step "another spelling of the same instant" {
  operation = "plan"
  variables = { tag = "two", base = "2020-02-29T12:00:00+00:00" }
  actions = {
    "time_static.base"   = "replace"
    "time_static.now"    = "no-op"
    "time_offset.year"   = "update"
    "time_rotating.far"  = "replace"
    "time_sleep.short"   = "replace"
  }
  non_empty_plan = true
}

step "no timestamp" {
  operation    = "plan"
  variables    = { base = "2020-02-29" }
  expect_error = "Invalid RFC3339 String Value"
}

step "no duration" {
  operation = "plan"
  config {
    resource "time_sleep" "short" {
      create_duration = "1h30m"
    }
  }
  expect_error = "Invalid Attribute Value Match"
}

step "an expired object is created again" {
  config {
    resource "time_rotating" "expired" {
      rfc3339       = "2020-01-01T00:00:00Z"
      rotation_days = 7
    }
  }
  non_empty_plan = true
}
