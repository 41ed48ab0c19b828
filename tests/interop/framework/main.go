// A small provider on terraform-plugin-framework, served over protocol 6. Its objects are books, each a JSON file in the
// directory the provider is configured with, so that a test can look at them and tamper with them.
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log"
	"os"
	"path/filepath"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	dschema "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	pschema "github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func main() {
	err := providerserver.Serve(context.Background(), func() provider.Provider { return &shelf{} }, providerserver.ServeOpts{
		Address:         "example.com/test/shelf",
		ProtocolVersion: 6,
	})
	if err != nil {
		log.Fatal(err)
	}
}

type shelf struct{}

func (p *shelf) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "shelf"
}

func (p *shelf) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = pschema.Schema{Attributes: map[string]pschema.Attribute{
		"directory": pschema.StringAttribute{Required: true},
	}}
}

func (p *shelf) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var directory types.String
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("directory"), &directory)...)
	resp.ResourceData = directory.ValueString()
	resp.DataSourceData = directory.ValueString()
}

func (p *shelf) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{func() resource.Resource { return &book{} }}
}

func (p *shelf) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{func() datasource.DataSource { return &title{} }}
}

// A book as it is stored.
type stored struct {
	Title    string          `json:"title"`
	Language string          `json:"language"`
	Pages    int64           `json:"pages"`
	Author   storedAuthor    `json:"author"`
	Chapters []storedChapter `json:"chapters"`
}

type storedAuthor struct {
	Name string `json:"name"`
	Born *int64 `json:"born"`
}

type storedChapter struct {
	Title  string `json:"title"`
	Number int64  `json:"number"`
}

type bookModel struct {
	ID       types.String   `tfsdk:"id"`
	Title    types.String   `tfsdk:"title"`
	Language types.String   `tfsdk:"language"`
	Pages    types.Int64    `tfsdk:"pages"`
	Author   *authorModel   `tfsdk:"author"`
	Chapters []chapterModel `tfsdk:"chapters"`
	Secret   types.String   `tfsdk:"secret"`
}

type authorModel struct {
	Name types.String `tfsdk:"name"`
	Born types.Int64  `tfsdk:"born"`
}

type chapterModel struct {
	Title  types.String `tfsdk:"title"`
	Number types.Int64  `tfsdk:"number"`
}

type book struct{ directory string }

func (r *book) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_book"
}

func (r *book) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"id": schema.StringAttribute{
			Computed:      true,
			PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
		},
		"title":    schema.StringAttribute{Required: true},
		"language": schema.StringAttribute{Optional: true, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()}},
		"pages":    schema.Int64Attribute{Optional: true, Computed: true, Default: int64default.StaticInt64(100)},
		"author": schema.SingleNestedAttribute{
			Required: true,
			Attributes: map[string]schema.Attribute{
				"name": schema.StringAttribute{Required: true},
				"born": schema.Int64Attribute{Optional: true},
			},
		},
		"chapters": schema.ListNestedAttribute{
			Optional: true,
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"title":  schema.StringAttribute{Required: true},
				"number": schema.Int64Attribute{Computed: true},
			}},
		},
		"secret": schema.StringAttribute{Computed: true, Sensitive: true},
	}}
}

func (r *book) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	if req.ProviderData != nil {
		r.directory = req.ProviderData.(string)
	}
}

func (r *book) file(id string) string { return filepath.Join(r.directory, id+".book.json") }

func (r *book) write(m *bookModel) error {
	s := stored{Title: m.Title.ValueString(), Language: m.Language.ValueString(), Pages: m.Pages.ValueInt64()}
	s.Author.Name = m.Author.Name.ValueString()
	s.Author.Born = m.Author.Born.ValueInt64Pointer()
	for i := range m.Chapters {
		m.Chapters[i].Number = types.Int64Value(int64(i + 1))
		s.Chapters = append(s.Chapters, storedChapter{m.Chapters[i].Title.ValueString(), int64(i + 1)})
	}
	m.Secret = types.StringValue("secret of " + s.Title)
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(r.file(m.ID.ValueString()), text, 0o600)
}

func (r *book) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m bookModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if m.Title.ValueString() == "forbidden" {
		resp.Diagnostics.AddAttributeError(path.Root("title"), "Forbidden title", "This book may not be shelved.")
		return
	}
	id := make([]byte, 4)
	if _, err := rand.Read(id); err != nil {
		resp.Diagnostics.AddError("No random id", err.Error())
		return
	}
	m.ID = types.StringValue(hex.EncodeToString(id))
	if err := r.write(&m); err != nil {
		resp.Diagnostics.AddError("Cannot write the book", err.Error())
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (r *book) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m bookModel
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	text, err := os.ReadFile(r.file(m.ID.ValueString()))
	if errors.Is(err, os.ErrNotExist) {
		resp.State.RemoveResource(ctx)
		return
	}
	var s stored
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		resp.Diagnostics.AddError("Cannot read the book", err.Error())
		return
	}
	m.Title = types.StringValue(s.Title)
	m.Language = types.StringNull()
	if s.Language != "" {
		m.Language = types.StringValue(s.Language)
	}
	m.Pages = types.Int64Value(s.Pages)
	m.Author = &authorModel{Name: types.StringValue(s.Author.Name), Born: types.Int64PointerValue(s.Author.Born)}
	m.Chapters = nil
	for _, c := range s.Chapters {
		m.Chapters = append(m.Chapters, chapterModel{types.StringValue(c.Title), types.Int64Value(c.Number)})
	}
	m.Secret = types.StringValue("secret of " + s.Title)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (r *book) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var m bookModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if err := r.write(&m); err != nil {
		resp.Diagnostics.AddError("Cannot write the book", err.Error())
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (r *book) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var id types.String
	resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root("id"), &id)...)
	if err := os.Remove(r.file(id.ValueString())); err != nil && !errors.Is(err, os.ErrNotExist) {
		resp.Diagnostics.AddError("Cannot remove the book", err.Error())
	}
}

func (r *book) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	resource.ImportStatePassthroughID(ctx, path.Root("id"), req, resp)
}

// The title of a book, looked up by its id.
type title struct{ directory string }

type titleModel struct {
	ID    types.String `tfsdk:"id"`
	Title types.String `tfsdk:"title"`
}

func (d *title) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_title"
}

func (d *title) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = dschema.Schema{Attributes: map[string]dschema.Attribute{
		"id":    dschema.StringAttribute{Required: true},
		"title": dschema.StringAttribute{Computed: true},
	}}
}

func (d *title) Configure(_ context.Context, req datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	if req.ProviderData != nil {
		d.directory = req.ProviderData.(string)
	}
}

func (d *title) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m titleModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	text, err := os.ReadFile(filepath.Join(d.directory, m.ID.ValueString()+".book.json"))
	var s stored
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		resp.Diagnostics.AddError("Cannot read the book", err.Error())
		return
	}
	m.Title = types.StringValue(s.Title)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}
