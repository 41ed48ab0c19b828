// A provider with actions on terraform-plugin-framework: things in memory alone, and an action that writes lines to the file
// that ACTS_LOG names, so that a test sees what was done in which order. Its name says which protocol it speaks:
// terraform-provider-acts5 and -acts6.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/action"
	aschema "github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	eschema "github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func main() {
	kind, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(os.Args[0]), "terraform-provider-"), "_")
	protocol := 6
	if kind == "acts5" {
		protocol = 5
	}
	err := providerserver.Serve(context.Background(), func() provider.Provider { return &acts{kind} }, providerserver.ServeOpts{
		Address:         "example.com/test/" + kind,
		ProtocolVersion: protocol,
	})
	if err != nil {
		log.Fatal(err)
	}
}

// note appends a line to the log.
func note(line string) error {
	name := os.Getenv("ACTS_LOG")
	if name == "" {
		return nil
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = fmt.Fprintln(file, line)
	return err
}

type acts struct{ kind string }

func (p *acts) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = p.kind
}
func (p *acts) Schema(context.Context, provider.SchemaRequest, *provider.SchemaResponse)          {}
func (p *acts) Configure(context.Context, provider.ConfigureRequest, *provider.ConfigureResponse) {}
func (p *acts) DataSources(context.Context) []func() datasource.DataSource                        { return nil }
func (p *acts) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{func() resource.Resource { return &thing{} }}
}
func (p *acts) Actions(context.Context) []func() action.Action {
	return []func() action.Action{func() action.Action { return &line{} }}
}
func (p *acts) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	return []func() ephemeral.EphemeralResource{func() ephemeral.EphemeralResource { return &secret{} }}
}

// A thing: another name replaces it, another size updates it. What "fails" names does not succeed.
type thing struct{}

type thingModel struct {
	ID    types.String `tfsdk:"id"`
	Name  types.String `tfsdk:"name"`
	Size  types.Int64  `tfsdk:"size"`
	Fails types.String `tfsdk:"fails"`
}

func (r *thing) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_thing"
}

func (r *thing) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"id":    schema.StringAttribute{Computed: true, PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()}},
		"name":  schema.StringAttribute{Required: true, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()}},
		"size":  schema.Int64Attribute{Optional: true},
		"fails": schema.StringAttribute{Optional: true},
	}}
}

func (r *thing) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m thingModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	_ = note("create " + m.Name.ValueString())
	if m.Fails.ValueString() == "create" {
		resp.Diagnostics.AddError("Not created", "As it was asked to.")
		return
	}
	m.ID = types.StringValue("id-" + m.Name.ValueString())
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (r *thing) Read(context.Context, resource.ReadRequest, *resource.ReadResponse) {}

func (r *thing) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var m thingModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	_ = note("update " + m.Name.ValueString())
	if m.Fails.ValueString() == "update" {
		resp.Diagnostics.AddError("Not updated", "As it was asked to.")
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (r *thing) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var m thingModel
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	_ = note("delete " + m.Name.ValueString())
}

// A line in the log, and a progress message for each step.
type line struct{}

type lineModel struct {
	Text   types.String `tfsdk:"text"`
	Steps  types.Int64  `tfsdk:"steps"`
	Secret types.String `tfsdk:"secret"`
	Fails  types.String `tfsdk:"fails"`
}

func (a *line) Metadata(_ context.Context, req action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_line"
}

func (a *line) Schema(_ context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = aschema.Schema{
		Description: "Writes a line.",
		Attributes: map[string]aschema.Attribute{
			"text":   aschema.StringAttribute{Required: true},
			"steps":  aschema.Int64Attribute{Optional: true},
			"secret": aschema.StringAttribute{Optional: true, WriteOnly: true},
			"fails":  aschema.StringAttribute{Optional: true, Description: "validate, plan, invoke or warn"},
		},
	}
}

func (a *line) ValidateConfig(ctx context.Context, req action.ValidateConfigRequest, resp *action.ValidateConfigResponse) {
	var m lineModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if m.Fails.ValueString() == "validate" {
		resp.Diagnostics.AddAttributeError(path.Root("text"), "Not valid", "As it was asked to.")
	}
}

func (a *line) ModifyPlan(ctx context.Context, req action.ModifyPlanRequest, resp *action.ModifyPlanResponse) {
	if req.Config.Raw.IsNull() {
		return
	}
	var m lineModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if m.Fails.ValueString() == "plan" {
		resp.Diagnostics.AddAttributeError(path.Root("text"), "Not planned", "As it was asked to.")
	}
}

func (a *line) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	var m lineModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	text := "action " + m.Text.ValueString()
	if !m.Secret.IsNull() {
		text += " with " + m.Secret.ValueString()
	}
	if err := note(text); err != nil {
		resp.Diagnostics.AddError("No log", err.Error())
	}
	for i := range m.Steps.ValueInt64() {
		resp.SendProgress(action.InvokeProgressEvent{Message: fmt.Sprintf("step %d of %s", i+1, m.Text.ValueString())})
	}
	switch m.Fails.ValueString() {
	case "invoke":
		resp.Diagnostics.AddAttributeError(path.Root("text"), "Not written", "As it was asked to.")
	case "warn":
		resp.Diagnostics.AddAttributeWarning(path.Root("text"), "Hardly written", "As it was asked to.")
	}
}

// A secret that lasts for one run.
type secret struct{}

func (e *secret) Metadata(_ context.Context, req ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_secret"
}

func (e *secret) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	resp.Schema = eschema.Schema{Attributes: map[string]eschema.Attribute{"value": eschema.StringAttribute{Computed: true}}}
}

func (e *secret) Open(ctx context.Context, _ ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	resp.Diagnostics.Append(resp.Result.SetAttribute(ctx, path.Root("value"), types.StringValue("hush"))...)
}
