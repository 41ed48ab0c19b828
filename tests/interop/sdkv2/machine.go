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

	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/validation"
)

// A machine as it is stored, under its name. Its password is stored as its length only.
type storedMachine struct {
	Size     int    `json:"size"`
	Zone     string `json:"zone"`
	Note     string `json:"note"`
	Password int    `json:"password"`
	Disks    []any  `json:"disks"`
	Network  []any  `json:"network"`
}

// A machine has what the SDK offers beside plain attributes: an identity, a write-only attribute, timeouts, a plan that is
// customised, differences that are suppressed, and a state of an earlier version.
func machine() *schema.Resource {
	disk := &schema.Resource{Schema: map[string]*schema.Schema{
		"label": {Type: schema.TypeString, Required: true},
		"size":  {Type: schema.TypeInt, Optional: true, Default: 1, ValidateFunc: validation.IntAtLeast(1)},
	}}
	network := &schema.Resource{Schema: map[string]*schema.Schema{
		"address": {Type: schema.TypeString, Optional: true, Computed: true},
		"public":  {Type: schema.TypeBool, Optional: true},
	}}
	return &schema.Resource{
		CreateContext: createMachine,
		ReadContext:   readMachine,
		UpdateContext: func(_ context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
			return writeMachine(d, meta)
		},
		DeleteContext: func(_ context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
			return diag.FromErr(os.Remove(machineFile(meta, d.Id())))
		},
		Importer: &schema.ResourceImporter{StateContext: schema.ImportStatePassthroughWithIdentity("name")},
		Identity: &schema.ResourceIdentity{
			SchemaFunc: func() map[string]*schema.Schema {
				return map[string]*schema.Schema{
					"name": {Type: schema.TypeString, RequiredForImport: true},
					"zone": {Type: schema.TypeString, OptionalForImport: true},
				}
			},
		},
		Timeouts: &schema.ResourceTimeout{
			Create: schema.DefaultTimeout(time.Minute),
			Delete: schema.DefaultTimeout(2 * time.Minute),
		},
		CustomizeDiff: func(_ context.Context, d *schema.ResourceDiff, _ any) error {
			if d.Id() != "" && d.HasChange("size") {
				// It can grow, and not shrink. Whether it has grown shows in its label.
				before, after := d.GetChange("size")
				if after.(int) < before.(int) {
					return d.ForceNew("size")
				}
				return d.SetNewComputed("label")
			}
			return nil
		},
		SchemaVersion: 1,
		StateUpgraders: []schema.StateUpgrader{{
			Version: 0,
			Type: (&schema.Resource{Schema: map[string]*schema.Schema{
				"name":    {Type: schema.TypeString, Required: true},
				"size_gb": {Type: schema.TypeString, Optional: true},
			}}).CoreConfigSchema().ImpliedType(),
			Upgrade: func(_ context.Context, state map[string]any, _ any) (map[string]any, error) {
				var size int
				if text, ok := state["size_gb"].(string); ok {
					if _, err := fmt.Sscanf(text, "%d", &size); err != nil {
						return nil, err
					}
				}
				state["size"] = size
				delete(state, "size_gb")
				return state, nil
			},
		}},
		Schema: map[string]*schema.Schema{
			"name": {Type: schema.TypeString, Required: true, ForceNew: true},
			"size": {Type: schema.TypeInt, Optional: true, Default: 10},
			"zone": {
				Type: schema.TypeString, Optional: true, Computed: true, ForceNew: true,
				DiffSuppressFunc: func(_, before, after string, _ *schema.ResourceData) bool {
					return strings.EqualFold(before, after)
				},
			},
			"note":             {Type: schema.TypeString, Optional: true, StateFunc: func(v any) string { return strings.TrimSpace(v.(string)) }},
			"label":            {Type: schema.TypeString, Computed: true},
			"password":         {Type: schema.TypeString, Optional: true, Sensitive: true, WriteOnly: true, RequiredWith: []string{"password_version"}},
			"password_version": {Type: schema.TypeInt, Optional: true},
			"password_length":  {Type: schema.TypeInt, Computed: true},
			"disk":             {Type: schema.TypeSet, Optional: true, Elem: disk},
			"network":          {Type: schema.TypeList, Optional: true, Computed: true, MaxItems: 1, Elem: network},
		},
	}
}

func machineFile(meta any, name string) string {
	return filepath.Join(meta.(string), name+".machine.json")
}

func createMachine(_ context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
	if d.Timeout(schema.TimeoutCreate) < time.Second {
		return diag.Errorf("a second is needed, and the timeout is %s", d.Timeout(schema.TimeoutCreate))
	}
	d.SetId(d.Get("name").(string))
	return writeMachine(d, meta)
}

func writeMachine(d *schema.ResourceData, meta any) diag.Diagnostics {
	zone := d.Get("zone").(string)
	if zone == "" {
		zone = "main"
	}
	network := d.Get("network").([]any)
	if len(network) == 0 || network[0] == nil {
		network = []any{map[string]any{"address": "", "public": false}}
	}
	if only := network[0].(map[string]any); only["address"] == "" {
		only["address"] = "10.0.0.1"
	}
	m := storedMachine{
		Size:    d.Get("size").(int),
		Zone:    zone,
		Note:    d.Get("note").(string),
		Disks:   d.Get("disk").(*schema.Set).List(),
		Network: network,
	}
	if password := d.GetRawConfig().GetAttr("password"); !password.IsNull() {
		m.Password = len(password.AsString())
	}
	text, err := json.Marshal(m)
	if err == nil {
		err = os.WriteFile(machineFile(meta, d.Id()), text, 0o600)
	}
	if err != nil {
		return diag.FromErr(err)
	}
	return readMachine(context.Background(), d, meta)
}

func readMachine(_ context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
	text, err := os.ReadFile(machineFile(meta, d.Id()))
	if errors.Is(err, os.ErrNotExist) {
		d.SetId("")
		return nil
	}
	var m storedMachine
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	for _, v := range m.Disks {
		disk := v.(map[string]any)
		disk["size"] = int(disk["size"].(float64))
	}
	identity, identityErr := d.Identity()
	if identityErr == nil {
		identityErr = errors.Join(identity.Set("name", d.Id()), identity.Set("zone", m.Zone))
	}
	return diag.FromErr(errors.Join(err, identityErr,
		d.Set("name", d.Id()), d.Set("size", m.Size), d.Set("zone", m.Zone), d.Set("note", m.Note),
		d.Set("label", fmt.Sprintf("%s-%d", d.Id(), m.Size)), d.Set("password_length", m.Password),
		d.Set("disk", m.Disks), d.Set("network", m.Network)))
}
