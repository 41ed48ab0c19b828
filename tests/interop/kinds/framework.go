package main

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	dschema "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	eschema "github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	pschema "github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// On the framework: everything; or, as half of a provider that is put together, what the older SDK does not have.
type frame struct {
	kind string
	half bool
}

func (p *frame) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = p.kind
}

func (p *frame) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = pschema.Schema{Attributes: map[string]pschema.Attribute{"greeting": pschema.StringAttribute{Optional: true}}}
}

func (p *frame) Configure(context.Context, provider.ConfigureRequest, *provider.ConfigureResponse) {}

func (p *frame) Resources(context.Context) []func() resource.Resource {
	if p.half {
		return nil
	}
	return []func() resource.Resource{
		func() resource.Resource { return &frameThing{} },
		func() resource.Resource { return &frameOld{} },
	}
}

func (p *frame) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{func() datasource.DataSource { return &frameLookup{} }}
}

func (p *frame) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	return []func() ephemeral.EphemeralResource{func() ephemeral.EphemeralResource { return &frameToken{} }}
}

func (p *frame) Functions(context.Context) []func() function.Function {
	return []func() function.Function{func() function.Function { return &frameTogether{} }}
}

type frameThing struct{}

type frameThingModel struct {
	ID   types.String `tfsdk:"id"`
	Name types.String `tfsdk:"name"`
	Size types.Int64  `tfsdk:"size"`
	Note types.String `tfsdk:"note"`
}

func (r *frameThing) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_thing"
}

func kept() schema.StringAttribute {
	return schema.StringAttribute{Computed: true, PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()}}
}

func fixed() schema.StringAttribute {
	return schema.StringAttribute{Required: true, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()}}
}

func (r *frameThing) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{Version: 1, Attributes: map[string]schema.Attribute{
		"id":   kept(),
		"name": fixed(),
		"size": schema.Int64Attribute{Optional: true},
		"note": kept(),
	}}
}

// Newer than what a host of this protocol level asks about: it comes along with every answer all the same.
func (r *frameThing) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"id": identityschema.StringAttribute{RequiredForImport: true},
	}}
}

func (r *frameThing) UpgradeState(context.Context) map[int64]resource.StateUpgrader {
	before := schema.Schema{Attributes: map[string]schema.Attribute{
		"id":    schema.StringAttribute{Computed: true},
		"title": schema.StringAttribute{Required: true},
		"size":  schema.Int64Attribute{Optional: true},
		"note":  schema.StringAttribute{Computed: true},
	}}
	return map[int64]resource.StateUpgrader{0: {
		PriorSchema: &before,
		StateUpgrader: func(ctx context.Context, req resource.UpgradeStateRequest, resp *resource.UpgradeStateResponse) {
			var m frameThingModel
			resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root("id"), &m.ID)...)
			resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root("title"), &m.Name)...)
			resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root("size"), &m.Size)...)
			resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root("note"), &m.Note)...)
			resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
		},
	}}
}

func (r *frameThing) MoveState(context.Context) []resource.StateMover {
	source := frameOldSchema()
	return []resource.StateMover{{
		SourceSchema: &source,
		StateMover: func(ctx context.Context, req resource.MoveStateRequest, resp *resource.MoveStateResponse) {
			if !strings.HasSuffix(req.SourceTypeName, "_old") || req.SourceState == nil {
				return
			}
			var m frameThingModel
			resp.Diagnostics.Append(req.SourceState.GetAttribute(ctx, path.Root("id"), &m.ID)...)
			resp.Diagnostics.Append(req.SourceState.GetAttribute(ctx, path.Root("name"), &m.Name)...)
			m.Note = types.StringValue(noteOf(m.Name.ValueString()))
			resp.Diagnostics.Append(resp.TargetState.Set(ctx, &m)...)
			resp.Diagnostics.Append(resp.TargetIdentity.SetAttribute(ctx, path.Root("id"), m.ID)...)
		},
	}}
}

func (r *frameThing) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m frameThingModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	id, note := made(m.Name.ValueString())
	m.ID, m.Note = types.StringValue(id), types.StringValue(note)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	resp.Diagnostics.Append(resp.Identity.SetAttribute(ctx, path.Root("id"), m.ID)...)
}

func (r *frameThing) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m frameThingModel
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if m.Name.IsNull() {
		m.Name, m.Note = types.StringValue("imported"), types.StringValue(noteOf("imported"))
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	resp.Diagnostics.Append(resp.Identity.SetAttribute(ctx, path.Root("id"), m.ID)...)
}

func (r *frameThing) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	resp.State.Raw = req.Plan.Raw
	var id types.String
	resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, path.Root("id"), &id)...)
	resp.Diagnostics.Append(resp.Identity.SetAttribute(ctx, path.Root("id"), id)...)
}

func (r *frameThing) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}

func (r *frameThing) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	resource.ImportStatePassthroughID(ctx, path.Root("id"), req, resp)
}

type frameOld struct{}

type frameOldModel struct {
	ID   types.String `tfsdk:"id"`
	Name types.String `tfsdk:"name"`
}

func frameOldSchema() schema.Schema {
	return schema.Schema{Attributes: map[string]schema.Attribute{"id": kept(), "name": fixed()}}
}

func (r *frameOld) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_old"
}

func (r *frameOld) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = frameOldSchema()
}

func (r *frameOld) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m frameOldModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	id, _ := made(m.Name.ValueString())
	m.ID = types.StringValue(id)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (r *frameOld) Read(context.Context, resource.ReadRequest, *resource.ReadResponse) {}

func (r *frameOld) Update(_ context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	resp.State.Raw = req.Plan.Raw
}

func (r *frameOld) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}

type frameLookup struct{}

type frameLookupModel struct {
	Name   types.String `tfsdk:"name"`
	Result types.String `tfsdk:"result"`
}

func (d *frameLookup) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_lookup"
}

func (d *frameLookup) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = dschema.Schema{Attributes: map[string]dschema.Attribute{
		"name":   dschema.StringAttribute{Required: true},
		"result": dschema.StringAttribute{Computed: true},
	}}
}

func (d *frameLookup) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m frameLookupModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	m.Result = types.StringValue("result of " + m.Name.ValueString())
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

type frameToken struct{}

type frameTokenModel struct {
	Name  types.String `tfsdk:"name"`
	Value types.String `tfsdk:"value"`
}

func (e *frameToken) Metadata(_ context.Context, req ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_token"
}

func (e *frameToken) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	resp.Schema = eschema.Schema{Attributes: map[string]eschema.Attribute{
		"name":  eschema.StringAttribute{Required: true},
		"value": eschema.StringAttribute{Computed: true},
	}}
}

func (e *frameToken) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var m frameTokenModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	m.Value = types.StringValue("token of " + m.Name.ValueString())
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, "open", []byte(`true`))...)
	resp.Diagnostics.Append(resp.Result.Set(ctx, &m)...)
	resp.RenewAt = soon()
}

func (e *frameToken) Renew(ctx context.Context, req ephemeral.RenewRequest, resp *ephemeral.RenewResponse) {
	if open, _ := req.Private.GetKey(ctx, "open"); string(open) != "true" {
		resp.Diagnostics.AddError("Not open", "What is not open cannot be renewed.")
	}
	resp.RenewAt = soon()
}

func (e *frameToken) Close(ctx context.Context, req ephemeral.CloseRequest, resp *ephemeral.CloseResponse) {
	if open, _ := req.Private.GetKey(ctx, "open"); string(open) != "true" {
		resp.Diagnostics.AddError("Not open", "What is not open cannot be closed.")
	}
}

type frameTogether struct{}

func (f *frameTogether) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "together"
}

func (f *frameTogether) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Parameters:        []function.Parameter{function.StringParameter{Name: "separator"}},
		VariadicParameter: function.StringParameter{Name: "texts"},
		Return:            function.StringReturn{},
	}
}

func (f *frameTogether) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var separator string
	var texts []string
	resp.Error = req.Arguments.Get(ctx, &separator, &texts)
	if resp.Error == nil {
		resp.Error = resp.Result.Set(ctx, strings.Join(texts, separator))
	}
}
