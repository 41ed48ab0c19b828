package main

import (
	"context"

	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
)

// On version 2 of the SDK: the things and what came before them. Alone it has the data source, too; as half of a provider
// that is put together, the other half has it.
func onSDK(kind string, half bool) *schema.Provider {
	provider := &schema.Provider{
		Schema: map[string]*schema.Schema{"greeting": {Type: schema.TypeString, Optional: true}},
		ResourcesMap: map[string]*schema.Resource{
			kind + "_thing": sdkThing(),
			kind + "_old":   sdkOld(),
		},
	}
	if !half {
		provider.DataSourcesMap = map[string]*schema.Resource{kind + "_lookup": {
			Schema: map[string]*schema.Schema{
				"name":   {Type: schema.TypeString, Required: true},
				"result": {Type: schema.TypeString, Computed: true},
			},
			ReadContext: func(_ context.Context, d *schema.ResourceData, _ any) diag.Diagnostics {
				d.SetId("-")
				return diag.FromErr(d.Set("result", "result of "+d.Get("name").(string)))
			},
		}}
	}
	return provider
}

func nothing(context.Context, *schema.ResourceData, any) diag.Diagnostics { return nil }

func sdkThing() *schema.Resource {
	before := &schema.Resource{Schema: map[string]*schema.Schema{
		"title": {Type: schema.TypeString, Required: true},
		"size":  {Type: schema.TypeInt, Optional: true},
		"note":  {Type: schema.TypeString, Computed: true},
	}}
	return &schema.Resource{
		SchemaVersion: 1,
		Schema: map[string]*schema.Schema{
			"name": {Type: schema.TypeString, Required: true, ForceNew: true},
			"size": {Type: schema.TypeInt, Optional: true},
			"note": {Type: schema.TypeString, Computed: true},
		},
		StateUpgraders: []schema.StateUpgrader{{
			Version: 0,
			Type:    before.CoreConfigSchema().ImpliedType(),
			Upgrade: func(_ context.Context, state map[string]any, _ any) (map[string]any, error) {
				state["name"] = state["title"]
				delete(state, "title")
				return state, nil
			},
		}},
		CreateContext: func(_ context.Context, d *schema.ResourceData, _ any) diag.Diagnostics {
			id, note := made(d.Get("name").(string))
			d.SetId(id)
			return diag.FromErr(d.Set("note", note))
		},
		ReadContext:   nothing,
		UpdateContext: nothing,
		DeleteContext: nothing,
		Importer: &schema.ResourceImporter{StateContext: func(_ context.Context, d *schema.ResourceData, _ any) ([]*schema.ResourceData, error) {
			err := d.Set("name", "imported")
			if err == nil {
				err = d.Set("note", noteOf("imported"))
			}
			return []*schema.ResourceData{d}, err
		}},
	}
}

func sdkOld() *schema.Resource {
	return &schema.Resource{
		Schema: map[string]*schema.Schema{"name": {Type: schema.TypeString, Required: true, ForceNew: true}},
		CreateContext: func(_ context.Context, d *schema.ResourceData, _ any) diag.Diagnostics {
			id, _ := made(d.Get("name").(string))
			d.SetId(id)
			return nil
		},
		ReadContext:   nothing,
		DeleteContext: nothing,
	}
}
