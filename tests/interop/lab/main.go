// A provider on terraform-plugin-framework that has a bit of everything a schema and a resource can have: nested blocks and
// nested attributes of all modes, sets, sensitive, computed and write-only attributes, private data, modified plans, moves
// between types, imports, ephemeral resources, functions, and operations that fail when they are asked to. Of each object a
// file is kept, with what the object's size really is.
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	dschema "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	eschema "github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	pschema "github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func main() {
	err := providerserver.Serve(context.Background(), func() provider.Provider { return &lab{} }, providerserver.ServeOpts{
		Address:         "example.com/test/lab",
		ProtocolVersion: 6,
	})
	if err != nil {
		log.Fatal(err)
	}
}

type lab struct{}

func (p *lab) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "lab"
}

func (p *lab) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = pschema.Schema{Attributes: map[string]pschema.Attribute{
		"directory": pschema.StringAttribute{Optional: true},
	}}
}

func (p *lab) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var directory types.String
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("directory"), &directory)...)
	dir := directory.ValueString()
	if dir == "" {
		dir = "objects"
	}
	resp.ResourceData, resp.DataSourceData, resp.EphemeralResourceData = dir, dir, dir
}

func (p *lab) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		func() resource.Resource { return &thing{} },
		func() resource.Resource { return &old{} },
	}
}

func (p *lab) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{func() datasource.DataSource { return &lookup{} }}
}

func (p *lab) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	return []func() ephemeral.EphemeralResource{func() ephemeral.EphemeralResource { return &token{} }}
}

func (p *lab) Functions(context.Context) []func() function.Function {
	return []func() function.Function{func() function.Function { return &together{} }}
}

// What is kept of an object.
type store struct{ directory string }

func (s *store) file(id string) string { return filepath.Join(s.directory, id) }

func (s *store) write(id string, size int64) error {
	if err := os.MkdirAll(s.directory, 0o700); err != nil {
		return err
	}
	return os.WriteFile(s.file(id), []byte(strconv.FormatInt(size, 10)), 0o600)
}

func (s *store) configure(data any) {
	if data != nil {
		s.directory = data.(string)
	}
}

func newID() string {
	id := make([]byte, 8)
	_, _ = rand.Read(id)
	return hex.EncodeToString(id)
}

type thing struct{ store }

type thingModel struct {
	ID              types.String `tfsdk:"id"`
	Name            types.String `tfsdk:"name"`
	Kind            types.String `tfsdk:"kind"`
	Size            types.Int64  `tfsdk:"size"`
	Secret          types.String `tfsdk:"secret"`
	Password        types.String `tfsdk:"password"`
	PasswordVersion types.Int64  `tfsdk:"password_version"`
	Labels          types.Map    `tfsdk:"labels"`
	Ports           types.Set    `tfsdk:"ports"`
	Spec            types.Object `tfsdk:"spec"`
	Items           types.List   `tfsdk:"items"`
	Rules           types.Set    `tfsdk:"rules"`
	Named           types.Map    `tfsdk:"named"`
	Note            types.String `tfsdk:"note"`
	Generation      types.Int64  `tfsdk:"generation"`
	Fail            types.String `tfsdk:"fail"`
	Limits          types.Object `tfsdk:"limits"`
	Step            types.List   `tfsdk:"step"`
	Tag             types.Set    `tfsdk:"tag"`
}

func (r *thing) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_thing"
}

func nested() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"level": schema.Int64Attribute{Optional: true},
		"mode":  schema.StringAttribute{Optional: true, Computed: true, Default: stringdefault.StaticString("auto")},
		"key":   schema.StringAttribute{Optional: true, Sensitive: true},
	}
}

func (r *thing) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	replace := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	resp.Schema = schema.Schema{
		Attributes: map[string]schema.Attribute{
			"id":   schema.StringAttribute{Computed: true, PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()}},
			"name": schema.StringAttribute{Required: true},
			"kind": schema.StringAttribute{Optional: true, PlanModifiers: replace},
			"size": schema.Int64Attribute{Optional: true, Computed: true, Default: int64default.StaticInt64(1)},

			"secret":           schema.StringAttribute{Optional: true, Sensitive: true},
			"password":         schema.StringAttribute{Optional: true, WriteOnly: true},
			"password_version": schema.Int64Attribute{Optional: true},

			"labels": schema.MapAttribute{Optional: true, ElementType: types.StringType},
			"ports":  schema.SetAttribute{Optional: true, ElementType: types.Int64Type},
			"spec":   schema.SingleNestedAttribute{Optional: true, Attributes: nested()},
			"items":  schema.ListNestedAttribute{Optional: true, NestedObject: schema.NestedAttributeObject{Attributes: nested()}},
			"rules":  schema.SetNestedAttribute{Optional: true, NestedObject: schema.NestedAttributeObject{Attributes: nested()}},
			"named":  schema.MapNestedAttribute{Optional: true, NestedObject: schema.NestedAttributeObject{Attributes: nested()}},

			"note":       schema.StringAttribute{Computed: true},
			"generation": schema.Int64Attribute{Computed: true},
			"fail":       schema.StringAttribute{Optional: true},
		},
		Blocks: map[string]schema.Block{
			"limits": schema.SingleNestedBlock{Attributes: map[string]schema.Attribute{
				"low":  schema.Int64Attribute{Optional: true},
				"high": schema.Int64Attribute{Optional: true},
			}},
			"step": schema.ListNestedBlock{NestedObject: schema.NestedBlockObject{
				Attributes: map[string]schema.Attribute{
					"command": schema.StringAttribute{Required: true},
				},
				Blocks: map[string]schema.Block{
					"env": schema.ListNestedBlock{NestedObject: schema.NestedBlockObject{Attributes: map[string]schema.Attribute{
						"name":  schema.StringAttribute{Required: true},
						"value": schema.StringAttribute{Optional: true, Sensitive: true},
					}}},
				},
			}},
			"tag": schema.SetNestedBlock{NestedObject: schema.NestedBlockObject{Attributes: map[string]schema.Attribute{
				"key":   schema.StringAttribute{Required: true},
				"value": schema.StringAttribute{Optional: true},
			}}},
		},
	}
}

func (r *thing) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	r.configure(req.ProviderData)
}

func (r *thing) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		resp.Diagnostics.AddWarning("An object goes", "It will not be seen again.")
		return
	}
	var size types.Int64
	resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, path.Root("size"), &size)...)
	if size.ValueInt64() < 0 {
		resp.Diagnostics.AddAttributeError(path.Root("size"), "Negative size", "A size is zero at least.")
	}
	if size.ValueInt64() > 1000 {
		resp.RequiresReplace = append(resp.RequiresReplace, path.Root("size"))
	}
}

func (r *thing) failing(m *thingModel, what string) error {
	if m.Fail.ValueString() == what {
		return errors.New("as it was asked to")
	}
	return nil
}

func (m *thingModel) finish(generation int64) {
	m.Password = types.StringNull()
	m.Generation = types.Int64Value(generation)
	m.Note = types.StringValue("note of " + m.Name.ValueString() + ", " + strconv.FormatInt(generation, 10))
}

func (r *thing) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m, config thingModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if err := r.failing(&m, "create"); err != nil {
		resp.Diagnostics.AddError("Cannot create", err.Error())
		return
	}
	m.ID = types.StringValue(newID())
	m.finish(1)
	if !config.Password.IsNull() {
		m.Note = types.StringValue("password of " + strconv.Itoa(len(config.Password.ValueString())) + " letters")
	}
	if err := r.write(m.ID.ValueString(), m.Size.ValueInt64()); err != nil {
		resp.Diagnostics.AddError("Cannot write", err.Error())
		return
	}
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, "generation", []byte(`"1"`))...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	if m.Fail.ValueString() == "half" {
		resp.Diagnostics.AddError("Only half created", "As it was asked to.")
	}
}

func (r *thing) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m thingModel
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	text, err := os.ReadFile(r.file(m.ID.ValueString()))
	if errors.Is(err, os.ErrNotExist) {
		resp.State.RemoveResource(ctx)
		return
	}
	size, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	m.Size = types.Int64Value(size)
	if m.Name.IsNull() {
		m.Name = types.StringValue("imported")
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (r *thing) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var m thingModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if err := r.failing(&m, "update"); err != nil {
		resp.Diagnostics.AddError("Cannot update", err.Error())
		return
	}
	kept, diagnostics := req.Private.GetKey(ctx, "generation")
	resp.Diagnostics.Append(diagnostics...)
	generation, _ := strconv.ParseInt(strings.Trim(string(kept), `"`), 10, 64)
	m.finish(generation + 1)
	if err := r.write(m.ID.ValueString(), m.Size.ValueInt64()); err != nil {
		resp.Diagnostics.AddError("Cannot write", err.Error())
		return
	}
	next := strconv.AppendQuote(nil, strconv.FormatInt(generation+1, 10))
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, "generation", next)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (r *thing) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var m thingModel
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if err := r.failing(&m, "delete"); err != nil {
		resp.Diagnostics.AddError("Cannot delete", err.Error())
		return
	}
	if err := os.Remove(r.file(m.ID.ValueString())); err != nil && !errors.Is(err, os.ErrNotExist) {
		resp.Diagnostics.AddError("Cannot remove", err.Error())
	}
}

func (r *thing) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	resource.ImportStatePassthroughID(ctx, path.Root("id"), req, resp)
}

func (r *thing) MoveState(ctx context.Context) []resource.StateMover {
	return []resource.StateMover{{
		SourceSchema: oldSchema(),
		StateMover: func(ctx context.Context, req resource.MoveStateRequest, resp *resource.MoveStateResponse) {
			if req.SourceTypeName != "lab_old" || req.SourceState == nil {
				return
			}
			var source oldModel
			resp.Diagnostics.Append(req.SourceState.Get(ctx, &source)...)
			resp.Diagnostics.Append(resp.TargetState.SetAttribute(ctx, path.Root("id"), source.ID)...)
			resp.Diagnostics.Append(resp.TargetState.SetAttribute(ctx, path.Root("name"), source.Name)...)
		},
	}}
}

// What things were before.
type old struct{ store }

type oldModel struct {
	ID   types.String `tfsdk:"id"`
	Name types.String `tfsdk:"name"`
}

func oldSchema() *schema.Schema {
	return &schema.Schema{Attributes: map[string]schema.Attribute{
		"id":   schema.StringAttribute{Computed: true, PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()}},
		"name": schema.StringAttribute{Required: true},
	}}
}

func (r *old) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_old"
}

func (r *old) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = *oldSchema()
}

func (r *old) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	r.configure(req.ProviderData)
}

func (r *old) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m oldModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	m.ID = types.StringValue(newID())
	if err := r.write(m.ID.ValueString(), 1); err != nil {
		resp.Diagnostics.AddError("Cannot write", err.Error())
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (r *old) Read(context.Context, resource.ReadRequest, *resource.ReadResponse) {}

func (r *old) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	resp.State.Raw = req.Plan.Raw
}

func (r *old) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}

// A result for a name.
type lookup struct{}

type lookupModel struct {
	Name   types.String `tfsdk:"name"`
	Result types.String `tfsdk:"result"`
}

func (d *lookup) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_lookup"
}

func (d *lookup) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = dschema.Schema{Attributes: map[string]dschema.Attribute{
		"name":   dschema.StringAttribute{Required: true},
		"result": dschema.StringAttribute{Computed: true},
	}}
}

func (d *lookup) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m lookupModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if m.Name.ValueString() == "nothing" {
		resp.Diagnostics.AddAttributeError(path.Root("name"), "Nothing found", "There is nothing of this name.")
		return
	}
	m.Result = types.StringValue("result of " + m.Name.ValueString())
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// A token that is valid while it is open.
type token struct{}

type tokenModel struct {
	Name  types.String `tfsdk:"name"`
	Value types.String `tfsdk:"value"`
}

func (e *token) Metadata(_ context.Context, req ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_token"
}

func (e *token) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	resp.Schema = eschema.Schema{Attributes: map[string]eschema.Attribute{
		"name":  eschema.StringAttribute{Required: true},
		"value": eschema.StringAttribute{Computed: true},
	}}
}

func (e *token) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var m tokenModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	m.Value = types.StringValue("token of " + m.Name.ValueString())
	resp.Diagnostics.Append(resp.Result.Set(ctx, &m)...)
}

// Texts put together.
type together struct{}

func (f *together) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "together"
}

func (f *together) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Parameters:        []function.Parameter{function.StringParameter{Name: "separator"}},
		VariadicParameter: function.StringParameter{Name: "texts"},
		Return:            function.StringReturn{},
	}
}

func (f *together) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var separator string
	var texts []string
	resp.Error = req.Arguments.Get(ctx, &separator, &texts)
	if resp.Error != nil {
		return
	}
	if len(texts) == 0 {
		resp.Error = function.NewArgumentFuncError(1, "nothing to put together")
		return
	}
	resp.Error = resp.Result.Set(ctx, strings.Join(texts, separator))
}
