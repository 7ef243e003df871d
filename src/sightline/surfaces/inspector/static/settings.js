"use strict";
// Settings and seers: what is set, what decided it, and which provider may get images. Each change is confirmed first.

async function showSettings(main) {
  const found = await get("settings");
  const again = () => showSettings(main);
  const status = h("p", { role: "status", class: "muted" });
  const providers = found.providers.map((each) => h("tr", {},
    h("th", { scope: "row" }, each.name),
    h("td", {}, h("span", { class: `pill ${each.consent ? "yes" : "no"}` }, each.consent === null ? "not asked" : each.consent ? "may get images" : "refused")),
    h("td", {}, h("button", { type: "button", onclick: () => changeConsent(each, again, status) }, each.consent ? "Withdraw" : "Give consent"))));
  const rows = found.settings.map((each) => h("tr", {},
    h("th", { scope: "row" }, each.name),
    h("td", {}, h("code", {}, formatSetting(each.value))),
    h("td", {}, h("span", { class: "pill" }, each.source), each.restart ? h("span", { class: "muted" }, " needs a restart") : ""),
    h("td", {}, h("button", { type: "button", "aria-label": `Change ${each.name}`, onclick: (event) => editSetting(event.target.closest("tr"), each, again, status) }, "Change"))));
  main.replaceChildren(
    h("h1", {}, "Settings and seers"), status,
    h("h2", {}, "Consent"),
    h("p", { class: "muted" }, "A provider that your agent does not address itself gets images, crops, pages and frames only with your consent."),
    h("div", { class: "scroll card", tabIndex: 0, role: "group", "aria-label": "Consent" }, h("table", { class: "list" }, h("tbody", {}, providers))),
    h("h2", {}, "Settings"),
    h("p", { class: "muted" }, `In ${found.file}. Keys are not shown, and can't be set here.`),
    h("div", { class: "scroll card", tabIndex: 0, role: "group", "aria-label": "Settings" }, h("table", { class: "list" },
      h("thead", {}, h("tr", {}, ["Name", "Value", "Decided by", ""].map((each) => each ? h("th", { scope: "col" }, each) : h("td", {})))), h("tbody", {}, rows))));
}

function formatSetting(value) {
  if (value === null || value === "") return "not set";
  return typeof value === "string" ? value : JSON.stringify(value);
}

async function changeConsent(provider, again, status) {
  const given = !provider.consent;
  const sure = await confirmInDialog(
    given ? `Let ${provider.name} see your images?` : `Stop sending images to ${provider.name}?`,
    given ? `Images, crops, pages and frames may then be sent to ${provider.name} to be described, with the end of the conversation.` : "Nothing is sent there to be described from now on.",
    given ? "Give consent" : "Withdraw");
  if (sure) await apply("consent", { provider: provider.name, given, confirmed: true }, again, status);
}

function editSetting(row, setting, again, status) {
  const field = h("input", { value: typeof setting.value === "string" ? setting.value : JSON.stringify(setting.value ?? ""), "aria-label": setting.name });
  const save = async () => {
    const sure = await confirmInDialog(`Change ${setting.name}?`, field.value === "" ? "The default applies then." : `It becomes ${field.value}.`, "Change");
    if (sure) await apply("setting", { name: setting.name, value: field.value, confirmed: true }, again, status);
  };
  field.addEventListener("keydown", (event) => { if (event.key === "Enter") save(); });
  row.children[1].replaceChildren(field);
  row.children[3].replaceChildren(h("button", { type: "button", class: "primary", onclick: save }, "Save"));
  field.focus();
}

async function apply(path, value, again, status) {
  try {
    await post(path, value);
    await again();
  } catch (error) {
    status.textContent = error.message;
    status.className = "error";
  }
}
