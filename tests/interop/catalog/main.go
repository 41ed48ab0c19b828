// A provider on the newest plugin framework, with what came after Terraform 1.11: identities, list resources, generated
// configuration; and with functions, ephemeral resources, write-only attributes and moves. Its items are files of a directory.
// CATALOG_PROTOCOL=5 makes it serve protocol 5. What is asked of it goes to the file that CATALOG_LOG names.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	eschema "github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/list"
	lschema "github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	pschema "github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func main() {
	opts := providerserver.ServeOpts{Address: "example.com/test/catalog", ProtocolVersion: 6}
	if os.Getenv("CATALOG_PROTOCOL") == "5" {
		opts.ProtocolVersion = 5
	}
	if err := providerserver.Serve(context.Background(), func() provider.Provider { return &catalog{} }, opts); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func log(format string, args ...any) {
	name := os.Getenv("CATALOG_LOG")
	if name == "" {
		return
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return
	}
	defer file.Close()
	fmt.Fprintf(file, format+"\n", args...)
}

type catalog struct{}

type settings struct {
	Directory types.String `tfsdk:"directory"`
}

func (*catalog) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "catalog"
	resp.Version = "1.0.0"
}

func (*catalog) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = pschema.Schema{Attributes: map[string]pschema.Attribute{"directory": pschema.StringAttribute{Required: true}}}
}

func (*catalog) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var s settings
	resp.Diagnostics.Append(req.Config.Get(ctx, &s)...)
	resp.ResourceData = s.Directory.ValueString()
	resp.ListResourceData = s.Directory.ValueString()
}

func (*catalog) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{func() resource.Resource { return &item{} }}
}

func (*catalog) ListResources(context.Context) []func() list.ListResource {
	return []func() list.ListResource{func() list.ListResource { return &items{} }}
}

func (*catalog) DataSources(context.Context) []func() datasource.DataSource { return nil }

func (*catalog) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	return []func() ephemeral.EphemeralResource{func() ephemeral.EphemeralResource { return &ticket{} }}
}

func (*catalog) Functions(context.Context) []func() function.Function {
	return []func() function.Function{func() function.Function { return &shout{} }}
}

// An item of the catalog.
type item struct{ directory string }

type itemModel struct {
	ID       types.String `tfsdk:"id"`
	Name     types.String `tfsdk:"name"`
	Shelf    types.String `tfsdk:"shelf"`
	Note     types.String `tfsdk:"note"`
	Token    types.String `tfsdk:"token"`
	Password types.String `tfsdk:"password"`
	Tags     types.Map    `tfsdk:"tags"`
}

type itemIdentity struct {
	ID    types.String `tfsdk:"id"`
	Shelf types.String `tfsdk:"shelf"`
}

type stored struct {
	Name  string            `json:"name"`
	Shelf string            `json:"shelf"`
	Note  string            `json:"note"`
	Tags  map[string]string `json:"tags"`
}

func (*item) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "catalog_item"
	// The shelf is part of the identity.
	resp.ResourceBehavior = resource.ResourceBehavior{MutableIdentity: true}
}

func (*item) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		Version: 1,
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{Computed: true, PlanModifiers: []planmodifier.String{
				stringplanmodifier.UseStateForUnknown(),
			}},
			"name": schema.StringAttribute{Required: true, PlanModifiers: []planmodifier.String{
				stringplanmodifier.RequiresReplace(),
			}},
			"shelf":    schema.StringAttribute{Optional: true},
			"note":     schema.StringAttribute{Optional: true, Computed: true},
			"token":    schema.StringAttribute{Computed: true, Sensitive: true},
			"password": schema.StringAttribute{Optional: true, WriteOnly: true},
			"tags":     schema.MapAttribute{Optional: true, ElementType: types.StringType},
		},
	}
}

func (*item) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{
		Version: 2,
		Attributes: map[string]identityschema.Attribute{
			"id":    identityschema.StringAttribute{RequiredForImport: true, Description: "The identifier."},
			"shelf": identityschema.StringAttribute{OptionalForImport: true},
		},
	}
}

func (i *item) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	if directory, ok := req.ProviderData.(string); ok {
		i.directory = directory
	}
}

func file(directory, id string) string { return filepath.Join(directory, id+".item.json") }

func (m *itemModel) store(ctx context.Context, directory string) error {
	s := stored{Name: m.Name.ValueString(), Shelf: m.Shelf.ValueString(), Note: m.Note.ValueString()}
	m.Tags.ElementsAs(ctx, &s.Tags, false)
	content, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(file(directory, m.ID.ValueString()), content, 0o644)
}

// Fills the model from the file of the object; false if there is none.
func (m *itemModel) load(ctx context.Context, directory string) bool {
	content, err := os.ReadFile(file(directory, m.ID.ValueString()))
	var s stored
	if err != nil || json.Unmarshal(content, &s) != nil {
		return false
	}
	m.Name = types.StringValue(s.Name)
	m.Shelf = types.StringNull()
	if s.Shelf != "" {
		m.Shelf = types.StringValue(s.Shelf)
	}
	m.Note = types.StringValue(s.Note)
	m.Token = types.StringValue("token of " + s.Name)
	m.Tags = types.MapNull(types.StringType)
	if s.Tags != nil {
		m.Tags, _ = types.MapValueFrom(ctx, types.StringType, s.Tags)
	}
	return true
}

func (m *itemModel) identity() itemIdentity { return itemIdentity{ID: m.ID, Shelf: m.Shelf} }

func (i *item) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan, config itemModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	log("create %s", plan.Name.ValueString())
	plan.ID = types.StringValue("item-" + strings.ToLower(plan.Name.ValueString()))
	plan.finish(config)
	if err := plan.store(ctx, i.directory); err != nil {
		resp.Diagnostics.AddError("Cannot write", err.Error())
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, plan.identity())...)
}

// What apply adds to a plan.
func (m *itemModel) finish(config itemModel) {
	if m.Note.IsUnknown() {
		m.Note = types.StringValue("no note")
	}
	if !config.Password.IsNull() {
		m.Note = types.StringValue(fmt.Sprintf("a password of %d letters", len(config.Password.ValueString())))
	}
	m.Password = types.StringNull()
	m.Token = types.StringValue("token of " + m.Name.ValueString())
}

func (i *item) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state itemModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	log("read %s", state.ID.ValueString())
	if !state.load(ctx, i.directory) {
		resp.State.RemoveResource(ctx)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, state.identity())...)
}

func (i *item) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, config itemModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	log("update %s", plan.Name.ValueString())
	plan.finish(config)
	if err := plan.store(ctx, i.directory); err != nil {
		resp.Diagnostics.AddError("Cannot write", err.Error())
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, plan.identity())...)
}


func (i *item) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state itemModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	log("delete %s", state.ID.ValueString())
	if err := os.Remove(file(i.directory, state.ID.ValueString())); err != nil {
		resp.Diagnostics.AddError("Cannot delete", err.Error())
	}
}

func (*item) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	log("import %q", req.ID)
	resource.ImportStatePassthroughWithIdentity(ctx, path.Root("id"), path.Root("id"), req, resp)
}

// Objects of the built-in provider become items.
func (*item) MoveState(context.Context) []resource.StateMover {
	return []resource.StateMover{{
		StateMover: func(ctx context.Context, req resource.MoveStateRequest, resp *resource.MoveStateResponse) {
			if req.SourceTypeName != "terraform_data" {
				return
			}
			var source struct {
				Input struct {
					Value string `json:"value"`
				} `json:"input"`
			}
			if err := json.Unmarshal(req.SourceRawState.JSON, &source); err != nil {
				resp.Diagnostics.AddError("Cannot move", err.Error())
				return
			}
			id := "item-" + strings.ToLower(source.Input.Value)
			moved := itemModel{
				ID: types.StringValue(id), Name: types.StringValue(source.Input.Value), Note: types.StringValue("moved"),
				Token: types.StringValue("token of " + source.Input.Value), Tags: types.MapNull(types.StringType),
			}
			resp.Diagnostics.Append(resp.TargetState.Set(ctx, &moved)...)
			if resp.TargetIdentity != nil {
				resp.Diagnostics.Append(resp.TargetIdentity.Set(ctx, moved.identity())...)
			}
		},
	}}
}

func (*item) UpgradeState(context.Context) map[int64]resource.StateUpgrader { return nil }

// Identities of version 1 had the name `item` for the identifier.
func (*item) UpgradeIdentity(context.Context) map[int64]resource.IdentityUpgrader {
	return map[int64]resource.IdentityUpgrader{1: {
		IdentityUpgrader: func(ctx context.Context, req resource.UpgradeIdentityRequest, resp *resource.UpgradeIdentityResponse) {
			log("upgrade identity %s", req.RawIdentity.JSON)
			var old struct{ Item string }
			if err := json.Unmarshal(req.RawIdentity.JSON, &old); err != nil {
				resp.Diagnostics.AddError("Cannot upgrade", err.Error())
				return
			}
			resp.Diagnostics.Append(resp.Identity.Set(ctx, itemIdentity{ID: types.StringValue(old.Item)})...)
		},
	}}
}

// The items that exist.
type items struct{ directory string }

type itemsConfig struct {
	Prefix types.String `tfsdk:"prefix"`
	Secret types.String `tfsdk:"secret"`
}

func (*items) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "catalog_item"
}

func (*items) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse) {
	resp.Schema = lschema.Schema{Attributes: map[string]lschema.Attribute{
		"prefix": lschema.StringAttribute{Optional: true},
		"secret": lschema.StringAttribute{Optional: true},
	}}
}

func (i *items) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	if directory, ok := req.ProviderData.(string); ok {
		i.directory = directory
	}
}

func (*items) ValidateListResourceConfig(ctx context.Context, req list.ValidateConfigRequest, resp *list.ValidateConfigResponse) {
	var config itemsConfig
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if config.Prefix.ValueString() == "forbidden" {
		resp.Diagnostics.AddAttributeError(path.Root("prefix"), "Forbidden prefix", "Nothing begins with this.")
	}
}

func (i *items) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var config itemsConfig
	diags := req.Config.Get(ctx, &config)
	if diags.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diags)
		return
	}
	log("list %q, objects %t, limit %d", config.Prefix.ValueString(), req.IncludeResource, req.Limit)
	names, _ := filepath.Glob(filepath.Join(i.directory, "*.item.json"))
	sort.Strings(names)
	stream.Results = func(push func(list.ListResult) bool) {
		for _, name := range names {
			model := itemModel{ID: types.StringValue(strings.TrimSuffix(filepath.Base(name), ".item.json"))}
			if !model.load(ctx, i.directory) || !strings.HasPrefix(model.Name.ValueString(), config.Prefix.ValueString()) {
				continue
			}
			result := req.NewListResult(ctx)
			result.DisplayName = "The " + model.Name.ValueString()
			result.Diagnostics.Append(result.Identity.Set(ctx, model.identity())...)
			if req.IncludeResource {
				result.Diagnostics.Append(result.Resource.Set(ctx, &model)...)
			}
			if !push(result) {
				return
			}
		}
	}
}

// A ticket, which is never stored.
type ticket struct{}

type ticketModel struct {
	Name   types.String `tfsdk:"name"`
	Secret types.String `tfsdk:"secret"`
}

func (*ticket) Metadata(_ context.Context, _ ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = "catalog_ticket"
}

func (*ticket) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	resp.Schema = eschema.Schema{Attributes: map[string]eschema.Attribute{
		"name":   eschema.StringAttribute{Required: true},
		"secret": eschema.StringAttribute{Computed: true},
	}}
}

func (*ticket) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var model ticketModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	model.Secret = types.StringValue("secret of " + model.Name.ValueString())
	resp.Diagnostics.Append(resp.Result.Set(ctx, &model)...)
}

// A function.
type shout struct{}

func (*shout) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "shout"
}

func (*shout) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Parameters: []function.Parameter{function.StringParameter{Name: "text"}},
		Return:     function.StringReturn{},
	}
}

func (*shout) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var text string
	resp.Error = function.ConcatFuncErrors(req.Arguments.Get(ctx, &text))
	resp.Error = function.ConcatFuncErrors(resp.Error, resp.Result.Set(ctx, strings.ToUpper(text)))
}
