// A small provider on terraform-plugin-sdk/v2, served over protocol 5. Its objects are tools and machines, each a JSON file in the
// directory the provider is configured with, so that a test can look at them and tamper with them.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/hashicorp/terraform-plugin-sdk/v2/plugin"
)

func main() {
	plugin.Serve(&plugin.ServeOpts{ProviderFunc: shed})
}

func shed() *schema.Provider {
	return &schema.Provider{
		Schema: map[string]*schema.Schema{
			"directory": {Type: schema.TypeString, Required: true},
		},
		ResourcesMap: map[string]*schema.Resource{
			"shed_tool": tool(), "shed_machine": machine(), "shed_rack": rack(),
		},
		DataSourcesMap: map[string]*schema.Resource{"shed_weight": weight()},
		ConfigureContextFunc: func(_ context.Context, d *schema.ResourceData) (any, diag.Diagnostics) {
			return d.Get("directory").(string), nil
		},
	}
}

// A tool as it is stored.
type stored struct {
	Name   string         `json:"name"`
	Weight int            `json:"weight"`
	Tags   []any          `json:"tags"`
	Handle []any          `json:"handle"`
	Parts  []any          `json:"parts"`
	Labels map[string]any `json:"labels"`
}

func tool() *schema.Resource {
	return &schema.Resource{
		CreateContext: func(ctx context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
			d.SetId(strconv.FormatInt(time.Now().UnixNano(), 36))
			return write(d, meta)
		},
		ReadContext: read,
		UpdateContext: func(ctx context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
			return write(d, meta)
		},
		DeleteContext: func(_ context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
			return diag.FromErr(os.Remove(file(meta, d.Id())))
		},
		Importer: &schema.ResourceImporter{StateContext: schema.ImportStatePassthroughContext},
		Schema: map[string]*schema.Schema{
			"name":   {Type: schema.TypeString, Required: true, ForceNew: true},
			"weight": {Type: schema.TypeInt, Optional: true, Default: 1},
			"tags":   {Type: schema.TypeSet, Optional: true, Elem: &schema.Schema{Type: schema.TypeString}},
			"labels": {Type: schema.TypeMap, Optional: true, Elem: &schema.Schema{Type: schema.TypeString}},
			"handle": {
				Type: schema.TypeList, Optional: true, MaxItems: 1,
				Elem: &schema.Resource{Schema: map[string]*schema.Schema{
					"material": {Type: schema.TypeString, Required: true},
					"length":   {Type: schema.TypeInt, Optional: true},
				}},
			},
			"part": {
				Type: schema.TypeSet, Optional: true,
				Elem: &schema.Resource{Schema: map[string]*schema.Schema{
					"name":   {Type: schema.TypeString, Required: true},
					"serial": {Type: schema.TypeString, Optional: true, Computed: true},
				}},
			},
			"path": {Type: schema.TypeString, Computed: true},
		},
	}
}

func file(meta any, id string) string { return filepath.Join(meta.(string), id+".tool.json") }

func write(d *schema.ResourceData, meta any) diag.Diagnostics {
	parts := d.Get("part").(*schema.Set).List()
	for _, p := range parts {
		part := p.(map[string]any)
		if part["serial"] == "" {
			part["serial"] = "serial-of-" + part["name"].(string)
		}
	}
	s := stored{
		Name:   d.Get("name").(string),
		Weight: d.Get("weight").(int),
		Tags:   d.Get("tags").(*schema.Set).List(),
		Handle: d.Get("handle").([]any),
		Parts:  parts,
		Labels: d.Get("labels").(map[string]any),
	}
	text, err := json.Marshal(s)
	if err == nil {
		err = os.WriteFile(file(meta, d.Id()), text, 0o600)
	}
	if err != nil {
		return diag.FromErr(err)
	}
	return read(context.Background(), d, meta)
}

func read(_ context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
	text, err := os.ReadFile(file(meta, d.Id()))
	if errors.Is(err, os.ErrNotExist) {
		d.SetId("")
		return nil
	}
	var s stored
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	for _, h := range s.Handle {
		handle := h.(map[string]any)
		if n, ok := handle["length"].(float64); ok {
			handle["length"] = int(n)
		}
	}
	return diag.FromErr(errors.Join(err,
		d.Set("name", s.Name), d.Set("weight", s.Weight), d.Set("tags", s.Tags), d.Set("labels", s.Labels),
		d.Set("handle", s.Handle), d.Set("part", s.Parts), d.Set("path", file(meta, d.Id()))))
}

// The weight of a tool, looked up by its id.
func weight() *schema.Resource {
	return &schema.Resource{
		ReadContext: func(_ context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
			id := d.Get("tool").(string)
			text, err := os.ReadFile(file(meta, id))
			var s stored
			if err == nil {
				err = json.Unmarshal(text, &s)
			}
			d.SetId(id)
			return diag.FromErr(errors.Join(err, d.Set("weight", s.Weight)))
		},
		Schema: map[string]*schema.Schema{
			"tool":   {Type: schema.TypeString, Required: true},
			"weight": {Type: schema.TypeInt, Computed: true},
		},
	}
}
