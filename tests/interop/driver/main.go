// A program that drives Terraform through HashiCorp's module terraform-exec, as CI systems and wrappers do. It takes the path of
// the executable and a directory, goes through the commands of the module, and prints what each returned, one JSON object a line.
// The test runs it with Monoform and with Terraform: the lines must be the same.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/hashicorp/terraform-exec/tfexec"
	tfjson "github.com/hashicorp/terraform-json"
)

const first = `
terraform {
  required_providers {
    random = {
      source = "hashicorp/random"
    }
  }
}

variable "size" {
  type    = number
  default = 3
}

resource "random_integer" "fixed" {
  min = var.size
  max = var.size
}

resource "terraform_data" "each" {
  for_each = toset(["a", "b"])
  input    = "${each.key} ${random_integer.fixed.result}"
}

resource "random_string" "imported" {
}

output "size" {
  value = random_integer.fixed.result
}

output "secret" {
  value     = "hidden"
  sensitive = true
}
`

// step prints the result of a step. Errors are only counted: their texts are prose.
func step(name string, value any, err error) {
	line := map[string]any{"step": name}
	if value != nil {
		line["value"] = value
	}
	if err != nil {
		line["failed"] = true
	}
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}

// addresses are the resources of a state, and of its modules.
func addresses(state *tfjson.State) []string {
	var out []string
	if state == nil || state.Values == nil {
		return out
	}
	for _, resource := range state.Values.RootModule.Resources {
		out = append(out, resource.Address)
	}
	sort.Strings(out)
	return out
}

// actions are the changes of a plan to resources, those without effect included. Outputs are left out: of an import Terraform
// records them all, the ones that are not known yet as null, and Monoform those that are known.
func actions(plan *tfjson.Plan) map[string]any {
	if plan == nil {
		return nil
	}
	out := map[string]any{"complete": plan.Complete}
	for _, change := range plan.ResourceChanges {
		out[change.Address] = change.Change.Actions
	}
	return out
}

// events are the kinds of the objects in a stream, and how often each comes.
func events(stream *bytes.Buffer) map[string]int {
	out := map[string]int{}
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			out["not JSON"]++
			continue
		}
		// Versions differ in how they say what init does.
		if event.Type != "init_output" && event.Type != "log" {
			out[event.Type]++
		}
	}
	return out
}

func main() {
	if err := drive(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func drive(executable, dir string) error {
	ctx := context.Background()
	config := filepath.Join(dir, "main.tf")
	if err := os.WriteFile(config, []byte(first), 0o600); err != nil {
		return err
	}
	tf, err := tfexec.NewTerraform(dir, executable)
	if err != nil {
		return err
	}

	version, _, err := tf.Version(ctx, true)
	step("version is a release", version != nil && version.Prerelease() == "", err)

	step("init", nil, tf.Init(ctx, tfexec.Upgrade(true)))
	var stream bytes.Buffer
	step("init, JSON", nil, tf.InitJSON(ctx, &stream))

	validated, err := tf.Validate(ctx)
	if validated != nil {
		var found []string
		for _, diagnostic := range validated.Diagnostics {
			found = append(found, string(diagnostic.Severity)+": "+diagnostic.Summary)
		}
		step("validate an empty block", map[string]any{"valid": validated.Valid, "errors": validated.ErrorCount, "found": found}, err)
	} else {
		step("validate an empty block", nil, err)
	}

	step("import into an empty block", nil, tf.Import(ctx, "random_string.imported", "abc"))
	state, err := tf.Show(ctx)
	step("state after import", addresses(state), err)

	complete := strings.Replace(first, `"imported" {`, "\"imported\" {\n  length = 3", 1)
	if err := os.WriteFile(config, []byte(complete), 0o600); err != nil {
		return err
	}
	validated, err = tf.Validate(ctx)
	step("validate", validated != nil && validated.Valid, err)

	schemas, err := tf.ProvidersSchema(ctx)
	if err == nil {
		attributes := []string{}
		for name := range schemas.Schemas["registry.terraform.io/hashicorp/random"].ResourceSchemas["random_integer"].Block.Attributes {
			attributes = append(attributes, name)
		}
		sort.Strings(attributes)
		step("providers schema", attributes, nil)
	} else {
		step("providers schema", nil, err)
	}

	changed, err := tf.Plan(ctx, tfexec.Out("a plan"), tfexec.Var("size=5"))
	step("plan", changed, err)
	plan, err := tf.ShowPlanFile(ctx, "a plan")
	step("show plan", actions(plan), err)
	raw, err := tf.ShowPlanFileRaw(ctx, "a plan")
	step("show plan, raw", strings.Contains(raw, "Plan: 3 to add, 0 to change, 0 to destroy."), err)
	step("apply plan", nil, tf.Apply(ctx, tfexec.DirOrPlan("a plan")))
	step("apply plan again", nil, tf.Apply(ctx, tfexec.DirOrPlan("a plan")))
	changed, err = tf.Plan(ctx, tfexec.Var("size=5"))
	step("plan, nothing to do", changed, err)
	state, err = tf.Show(ctx)
	step("show state", addresses(state), err)

	outputs, err := tf.Output(ctx)
	values := map[string]any{}
	for name, output := range outputs {
		values[name] = map[string]any{"value": output.Value, "type": output.Type, "sensitive": output.Sensitive}
	}
	step("output", values, err)

	stream.Reset()
	changed, err = tf.PlanJSON(ctx, &stream, tfexec.Var("size=6"))
	step("plan, JSON", map[string]any{"changed": changed, "events": events(&stream)}, err)
	stream.Reset()
	err = tf.ApplyJSON(ctx, &stream, tfexec.Var("size=6"), tfexec.Parallelism(1))
	step("apply, JSON", events(&stream), err)
	stream.Reset()
	err = tf.RefreshJSON(ctx, &stream, tfexec.Var("size=6"))
	step("refresh, JSON", events(&stream), err)

	step("state mv", nil, tf.StateMv(ctx, `terraform_data.each["a"]`, `terraform_data.each["c"]`))
	step("state rm", nil, tf.StateRm(ctx, `terraform_data.each["b"]`))
	step("state rm, not there", nil, tf.StateRm(ctx, `terraform_data.none`))
	step("taint", nil, tf.Taint(ctx, "random_integer.fixed"))
	step("untaint", nil, tf.Untaint(ctx, "random_integer.fixed"))
	step("taint, not there", nil, tf.Taint(ctx, "random_integer.none"))
	pulled, err := tf.StatePull(ctx)
	step("state pull", strings.Contains(pulled, `"version": 4`), err)
	if err := os.WriteFile(filepath.Join(dir, "pushed"), []byte(pulled), 0o600); err != nil {
		return err
	}
	step("state push", nil, tf.StatePush(ctx, "pushed"))
	state, err = tf.ShowStateFile(ctx, "pushed")
	step("show state file", addresses(state), err)

	graph, err := tf.Graph(ctx)
	step("graph", strings.HasPrefix(graph, "digraph"), err)

	formatted, err := tf.FormatString(ctx, "a=1\nlong   =   2\n")
	step("fmt", formatted, err)
	if err := os.WriteFile(filepath.Join(dir, "ugly.tf"), []byte("locals {\n a=1\n}\n"), 0o600); err != nil {
		return err
	}
	clean, files, err := tf.FormatCheck(ctx)
	step("fmt -check", map[string]any{"clean": clean, "files": files}, err)
	step("fmt -write", nil, tf.FormatWrite(ctx))
	clean, files, err = tf.FormatCheck(ctx)
	step("fmt -check again", map[string]any{"clean": clean, "files": files}, err)

	step("workspace new", nil, tf.WorkspaceNew(ctx, "other"))
	step("workspace new, there already", nil, tf.WorkspaceNew(ctx, "other"))
	all, current, err := tf.WorkspaceList(ctx)
	step("workspace list", map[string]any{"all": all, "current": current}, err)
	shown, err := tf.WorkspaceShow(ctx)
	step("workspace show", shown, err)
	step("workspace select", nil, tf.WorkspaceSelect(ctx, "default"))
	step("workspace delete", nil, tf.WorkspaceDelete(ctx, "other"))

	functions, err := tf.MetadataFunctions(ctx)
	step("metadata functions", functions != nil && functions.Signatures["jsonencode"] != nil, err)

	stream.Reset()
	step("test, none", nil, tf.Test(ctx, &stream))

	if err := os.WriteFile(filepath.Join(dir, "wrong.tf"), []byte("locals {\n  b = local.none\n}\n"), 0o600); err != nil {
		return err
	}
	validated, err = tf.Validate(ctx)
	if validated != nil && len(validated.Diagnostics) > 0 {
		found := validated.Diagnostics[0]
		step("validate, invalid", map[string]any{"valid": validated.Valid, "summary": found.Summary, "at": found.Range}, err)
	} else {
		step("validate, invalid", nil, err)
	}
	_, err = tf.Plan(ctx)
	step("plan, invalid", nil, err)
	if err := os.Remove(filepath.Join(dir, "wrong.tf")); err != nil {
		return err
	}

	stream.Reset()
	err = tf.DestroyJSON(ctx, &stream, tfexec.Var("size=6"))
	step("destroy, JSON", events(&stream), err)
	state, err = tf.Show(ctx)
	step("state at the end", addresses(state), err)
	return nil
}
