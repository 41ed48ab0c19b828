package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-cty/cty"
	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/customdiff"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
)

// What version 2 of the plugin SDK has beyond a plain resource: an identity, write-only arguments, blocks of each kind,
// timeouts, a plan that the provider customizes, differences that it suppresses, and states of earlier versions. Objects are
// JSON files named after them, so that they have the same ids wherever they are made.
func rack() *schema.Resource {
	peg := func(extra map[string]*schema.Schema) *schema.Resource {
		fields := map[string]*schema.Schema{
			"label":  {Type: schema.TypeString, Required: true},
			"width":  {Type: schema.TypeInt, Optional: true},
			"fixed":  {Type: schema.TypeBool, Optional: true, Default: true},
			"colour": {Type: schema.TypeString, Optional: true, Computed: true},
		}
		for name, s := range extra {
			fields[name] = s
		}
		return &schema.Resource{Schema: fields}
	}
	return &schema.Resource{
		SchemaVersion: 2,
		StateUpgraders: []schema.StateUpgrader{
			{Version: 0, Type: cty.Object(map[string]cty.Type{"id": cty.String, "title": cty.String}), Upgrade: rename("title", "called")},
			{Version: 1, Type: cty.Object(map[string]cty.Type{"id": cty.String, "called": cty.String}), Upgrade: rename("called", "name")},
		},
		Identity: &schema.ResourceIdentity{
			Version: 1,
			SchemaFunc: func() map[string]*schema.Schema {
				return map[string]*schema.Schema{
					"name": {Type: schema.TypeString, RequiredForImport: true, Description: "Its name."},
					"room": {Type: schema.TypeString, OptionalForImport: true},
				}
			},
			IdentityUpgraders: []schema.IdentityUpgrader{{Version: 0, Upgrade: func(_ context.Context, raw map[string]any, _ any) (map[string]any, error) {
				return map[string]any{"name": raw["rack"], "room": "main"}, nil
			}}},
		},
		ResourceBehavior: schema.ResourceBehavior{MutableIdentity: true},
		Timeouts: &schema.ResourceTimeout{
			Create: schema.DefaultTimeout(3 * time.Minute), Update: schema.DefaultTimeout(2 * time.Minute), Delete: schema.DefaultTimeout(time.Minute),
		},
		Importer: &schema.ResourceImporter{StateContext: func(_ context.Context, d *schema.ResourceData, meta any) ([]*schema.ResourceData, error) {
			if d.Id() == "" {
				identity, err := d.Identity()
				if err != nil {
					return nil, err
				}
				d.SetId("rack-" + strings.ToLower(identity.Get("name").(string)))
			}
			return []*schema.ResourceData{d}, nil
		}},
		CreateContext: func(ctx context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
			d.SetId("rack-" + strings.ToLower(d.Get("name").(string)))
			return writeRack(d, meta)
		},
		ReadContext: readRack,
		UpdateContext: func(ctx context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
			return writeRack(d, meta)
		},
		DeleteContext: func(_ context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
			return diag.FromErr(os.Remove(rackFile(meta, d.Id())))
		},
		CustomizeDiff: customdiff.All(
			// What grows is changed in place, what shrinks is made anew.
			customdiff.ForceNewIfChange("height", func(_ context.Context, old, new, _ any) bool { return new.(int) < old.(int) }),
			customdiff.ComputedIf("revision", func(_ context.Context, d *schema.ResourceDiff, _ any) bool {
				return d.Id() != "" && d.HasChanges("note", "height", "peg", "slot")
			}),
			func(_ context.Context, d *schema.ResourceDiff, _ any) error {
				if d.Get("height").(int) > 100 {
					return errors.New("a rack is at most 100 high")
				}
				if d.Id() == "" {
					return d.SetNew("size", fmt.Sprint("h", d.Get("height")))
				}
				if d.HasChange("height") {
					return d.SetNew("size", fmt.Sprint("h", d.Get("height")))
				}
				return nil
			},
		),
		Schema: map[string]*schema.Schema{
			"name": {Type: schema.TypeString, Required: true, ForceNew: true},
			"room": {Type: schema.TypeString, Optional: true, Default: "main"},
			"note": {Type: schema.TypeString, Optional: true, DiffSuppressFunc: func(_, old, new string, _ *schema.ResourceData) bool {
				return strings.EqualFold(old, new)
			}},
			"policy": {Type: schema.TypeString, Optional: true, StateFunc: func(v any) string { return strings.Join(strings.Fields(v.(string)), " ") },
				DiffSuppressOnRefresh: true, DiffSuppressFunc: func(_, old, new string, _ *schema.ResourceData) bool {
					return strings.Join(strings.Fields(old), " ") == strings.Join(strings.Fields(new), " ")
				}},
			"height":      {Type: schema.TypeInt, Optional: true, Default: 10},
			"weight":      {Type: schema.TypeFloat, Optional: true},
			"open":        {Type: schema.TypeBool, Optional: true},
			"secret":      {Type: schema.TypeString, Optional: true, Sensitive: true},
			"key_wo":      {Type: schema.TypeString, Optional: true, WriteOnly: true, RequiredWith: []string{"key_version"}},
			"key_version": {Type: schema.TypeInt, Optional: true},
			"key_length":  {Type: schema.TypeInt, Computed: true},
			"names":       {Type: schema.TypeList, Optional: true, Elem: &schema.Schema{Type: schema.TypeString}},
			"numbers":     {Type: schema.TypeSet, Optional: true, Computed: true, Elem: &schema.Schema{Type: schema.TypeInt}},
			"labels":      {Type: schema.TypeMap, Optional: true, Elem: &schema.Schema{Type: schema.TypeString}},
			"size":        {Type: schema.TypeString, Computed: true},
			"revision":    {Type: schema.TypeInt, Computed: true},
			"peg":         {Type: schema.TypeSet, Optional: true, Elem: peg(nil)},
			"slot": {Type: schema.TypeList, Optional: true, Elem: peg(map[string]*schema.Schema{
				"inner": {Type: schema.TypeSet, Optional: true, MaxItems: 3, Elem: peg(nil)},
			})},
			"door": {Type: schema.TypeList, Optional: true, MaxItems: 1, Elem: peg(map[string]*schema.Schema{
				"lock": {Type: schema.TypeList, Optional: true, MaxItems: 1, ForceNew: true, Elem: peg(nil)},
			})},
			"found":  {Type: schema.TypeList, Computed: true, Elem: peg(nil)},
			"either": {Type: schema.TypeList, Optional: true, Computed: true, ConfigMode: schema.SchemaConfigModeAttr, Elem: peg(nil)},
		},
	}
}

func rename(from, to string) schema.StateUpgradeFunc {
	return func(_ context.Context, raw map[string]any, _ any) (map[string]any, error) {
		raw[to] = raw[from]
		delete(raw, from)
		return raw, nil
	}
}

func rackFile(meta any, id string) string { return filepath.Join(meta.(string), id+".rack.json") }

// What is stored as it is; blocks are stored with the colours that were not chosen.
var plain = []string{"name", "room", "note", "policy", "height", "weight", "open", "secret", "key_version", "names", "labels"}

func painted(blocks []any) []any {
	for _, b := range blocks {
		block, ok := b.(map[string]any)
		if !ok {
			continue
		}
		if block["colour"] == "" {
			block["colour"] = "grey"
		}
		if set, ok := block["inner"].(*schema.Set); ok {
			block["inner"] = painted(set.List())
		}
		if list, ok := block["lock"].([]any); ok {
			block["lock"] = painted(list)
		}
	}
	return blocks
}

func writeRack(d *schema.ResourceData, meta any) diag.Diagnostics {
	stored := map[string]any{}
	for _, name := range plain {
		stored[name] = d.Get(name)
	}
	stored["numbers"] = d.Get("numbers").(*schema.Set).List()
	stored["peg"] = painted(d.Get("peg").(*schema.Set).List())
	stored["slot"] = painted(d.Get("slot").([]any))
	stored["door"] = painted(d.Get("door").([]any))
	stored["either"] = painted(d.Get("either").([]any))
	stored["revision"] = d.Get("revision").(int) + 1
	key, problems := d.GetRawConfigAt(cty.GetAttrPath("key_wo"))
	if problems.HasError() {
		return problems
	}
	if !key.IsNull() {
		stored["key_length"] = len(key.AsString())
	}
	text, err := json.Marshal(stored)
	if err == nil {
		err = os.WriteFile(rackFile(meta, d.Id()), text, 0o600)
	}
	if err != nil {
		return diag.FromErr(err)
	}
	warning := diag.Diagnostic{Severity: diag.Warning, Summary: "Written", Detail: "It takes " + d.Timeout(schema.TimeoutCreate).String(),
		AttributePath: cty.GetAttrPath("name")}
	return append(readRack(context.Background(), d, meta), warning)
}

// Numbers of JSON as the SDK wants them.
func whole(v any) any {
	switch v := v.(type) {
	case float64:
		return int(v)
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = whole(v[name])
		}
	}
	return v
}

func readRack(_ context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
	text, err := os.ReadFile(rackFile(meta, d.Id()))
	if errors.Is(err, os.ErrNotExist) {
		d.SetId("")
		return nil
	}
	stored := map[string]any{}
	if err == nil {
		err = json.Unmarshal(text, &stored)
	}
	for name, value := range stored {
		if name != "weight" {
			value = whole(value)
		}
		err = errors.Join(err, d.Set(name, value))
	}
	err = errors.Join(err, d.Set("found", stored["peg"]))
	identity, problem := d.Identity()
	if problem == nil {
		problem = errors.Join(identity.Set("name", stored["name"]), identity.Set("room", stored["room"]))
	}
	return diag.FromErr(errors.Join(err, problem))
}
