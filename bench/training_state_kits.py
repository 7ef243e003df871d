"""Write pages of menus, tabs, pages, lists and tables in the markup that style packages document, for training.

A group is what is around its items, an item, and the classes of one that is selected and of one that is disabled.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from training_kits import PACKAGES, StylePackage
from training_pages import ICON_FONTS, PageWriter

SCORED_ONLY = 4  # one family of so many is never trained on
SIDE = 0.35  # share of pages whose items have icons


@dataclass(frozen=True)
class ItemGroup:
    """Items that belong together; {on} is the class of the one that is selected, {aria} what else says so."""

    around: str
    item: str
    on: str = "active"
    off: str = "disabled"
    kind: str = "words"  # or numbers, cells, titles


def _make(around: str, item: str, on: str = "active", off: str = "disabled", kind: str = "words") -> ItemGroup:
    return ItemGroup(around, item, on, off, kind)


LI = '<li class="{on}"><a href="#">{text}</a></li>'
A = '<a href="#" class="{on}" {aria}>{text}</a>'
NAV_LINK = '<li class="nav-item"><a class="nav-link {on}" href="#">{text}</a></li>'
ROW = '<tr class="{on}" {aria}>{cells}</tr>'
CELL = "<td>{text}</td>"
BOOTSTRAP = (
    _make('<ul class="nav nav-tabs">{items}</ul>', NAV_LINK),
    _make('<div class="card"><div class="card-header"><ul class="nav nav-tabs card-header-tabs">{items}</ul></div><div class="card-body">Text</div></div>', NAV_LINK),
    _make('<ul class="nav nav-pills">{items}</ul>', NAV_LINK),
    _make('<ul class="nav nav-pills flex-column">{items}</ul>', NAV_LINK),
    _make('<ul class="nav nav-underline">{items}</ul>', NAV_LINK),
    _make('<div class="list-group">{items}</div>', '<a href="#" class="list-group-item list-group-item-action {on}">{text}</a>'),
    _make('<div class="list-group list-group-flush">{items}</div>', '<button type="button" class="list-group-item list-group-item-action {on}">{text}</button>'),
    _make('<ul class="pagination">{items}</ul>', '<li class="page-item {on}"><a class="page-link" href="#">{text}</a></li>', kind="numbers"),
    _make('<ul class="pagination pagination-sm">{items}</ul>', '<li class="page-item {on}"><a class="page-link" href="#">{text}</a></li>', kind="numbers"),
    _make('<nav class="navbar navbar-expand navbar-dark bg-dark" data-bs-theme="dark"><a class="navbar-brand" href="#">Brand</a><ul class="navbar-nav">{items}</ul></nav>', NAV_LINK),
    _make('<nav class="navbar navbar-expand navbar-dark bg-primary" data-bs-theme="dark"><a class="navbar-brand" href="#">Brand</a><ul class="navbar-nav">{items}</ul></nav>', NAV_LINK),
    _make('<nav class="navbar navbar-expand navbar-light bg-light"><a class="navbar-brand" href="#">Brand</a><ul class="navbar-nav">{items}</ul></nav>', NAV_LINK),
    _make('<table class="table">{items}</table>', ROW, "table-active", kind="cells"),
    _make('<div class="btn-group">{items}</div>', '<button type="button" class="btn btn-outline-primary {on}">{text}</button>'),
    _make('<div class="btn-group">{items}</div>', '<button type="button" class="btn btn-secondary {on}">{text}</button>'),
    _make('<div class="dropdown-menu show" style="position:static;display:block">{items}</div>', '<a class="dropdown-item {on}" href="#">{text}</a>'),
)  # fmt: skip
BOOTSTRAP_3 = (
    _make('<ul class="nav nav-tabs">{items}</ul>', LI), _make('<ul class="nav nav-pills">{items}</ul>', LI),
    _make('<ul class="nav nav-pills nav-stacked">{items}</ul>', LI),
    _make('<div class="list-group">{items}</div>', '<a href="#" class="list-group-item {on}">{text}</a>'),
    _make('<ul class="pagination">{items}</ul>', LI, kind="numbers"),
    _make('<nav class="navbar navbar-default"><a class="navbar-brand">Brand</a><ul class="nav navbar-nav">{items}</ul></nav>', LI),
    _make('<nav class="navbar navbar-inverse"><a class="navbar-brand">Brand</a><ul class="nav navbar-nav">{items}</ul></nav>', LI),
    _make('<table class="table">{items}</table>', ROW, kind="cells"),
    _make('<div class="btn-group">{items}</div>', '<button type="button" class="btn btn-default {on}">{text}</button>'),
    _make('<ul class="dropdown-menu" style="position:static;display:block">{items}</ul>', LI),
)  # fmt: skip
PRIME = (
    _make('<div class="p-tabmenu"><ul class="p-tabmenu-nav">{items}</ul></div>', '<li class="p-tabmenuitem {on}" {aria}><a class="p-menuitem-link"><span class="p-menuitem-text">{text}</span></a></li>', "p-highlight", "p-disabled"),
    _make('<div class="p-tabview"><ul class="p-tabview-nav" style="display:flex;list-style:none;margin:0;padding:0">{items}</ul></div>', '<li class="{on}" role="tab" {aria}><a class="p-tabview-nav-link" style="display:flex;text-decoration:none"><span class="p-tabview-title">{text}</span></a></li>', "p-highlight", "p-disabled"),
    _make('<div class="p-paginator p-component" style="display:flex"><span class="p-paginator-pages">{items}</span></div>', '<button class="p-paginator-page p-paginator-element p-link {on}" {aria} style="border-width:0;cursor:pointer">{text}</button>', "p-highlight", "p-disabled", "numbers"),
    _make('<div class="p-datatable p-component"><table class="p-datatable-table" style="border-collapse:collapse;width:100%"><tbody class="p-datatable-tbody">{items}</tbody></table></div>', ROW, "p-highlight", "", "cells"),
    _make('<div class="p-menu p-component"><ul class="p-menu-list p-reset" style="list-style:none;margin:0;padding:0">{items}</ul></div>', '<li class="p-menuitem {on}" {aria}><div class="p-menuitem-content"><a class="p-menuitem-link" style="display:flex;text-decoration:none"><span class="p-menuitem-text">{text}</span></a></div></li>', "p-highlight p-focus", "p-disabled"),
    _make('<div class="p-listbox p-component"><ul class="p-listbox-list" style="list-style:none;margin:0">{items}</ul></div>', '<li class="p-listbox-item {on}" role="option" {aria}>{text}</li>', "p-highlight", "p-disabled"),
    _make('<div class="p-selectbutton p-buttonset p-component">{items}</div>', '<div class="p-button p-component {on}" role="button" {aria}><span class="p-button-label">{text}</span></div>', "p-highlight", "p-disabled"),
    _make('<div class="p-tree p-component"><ul class="p-tree-container" style="list-style:none;margin:0;padding:0">{items}</ul></div>', '<li class="p-treenode" {aria}><div class="p-treenode-content p-treenode-selectable {on}"><span class="p-treenode-label">{text}</span></div></li>', "p-highlight", ""),
)  # fmt: skip
KENDO = (
    _make('<div class="k-tabstrip k-tabstrip-md k-tabstrip-top"><div class="k-tabstrip-items-wrapper k-hstack"><ul class="k-tabstrip-items k-reset k-tabstrip-items-start">{items}</ul></div></div>', '<li class="k-tabstrip-item k-item {on}" role="tab" {aria}><span class="k-link"><span class="k-link-text">{text}</span></span></li>', "k-active", "k-disabled"),
    _make('<div class="k-pager k-pager-md"><div class="k-pager-numbers-wrap"><div class="k-pager-numbers">{items}</div></div></div>', '<button class="k-button k-button-md k-button-flat k-button-flat-primary k-rounded-md {on}" {aria}>{text}</button>', "k-selected", "k-disabled", "numbers"),
    _make('<div class="k-list k-list-md"><div class="k-list-content"><ul class="k-list-ul">{items}</ul></div></div>', '<li class="k-list-item {on}" role="option" {aria}><span class="k-list-item-text">{text}</span></li>', "k-selected", "k-disabled"),
    _make('<div class="k-grid k-grid-md"><table class="k-grid-table k-table k-table-md"><tbody class="k-table-tbody">{items}</tbody></table></div>', '<tr class="k-master-row k-table-row {on}" {aria}>{cells}</tr>', "k-selected", "", "cells"),
    _make('<div class="k-treeview k-treeview-md"><ul class="k-treeview-group">{items}</ul></div>', '<li class="k-treeview-item" {aria}><div class="k-treeview-mid"><span class="k-treeview-leaf {on}"><span class="k-treeview-leaf-text">{text}</span></span></div></li>', "k-selected", "k-disabled"),
    _make('<ul class="k-panelbar">{items}</ul>', '<li class="k-panelbar-item k-panelbar-header" {aria}><span class="k-link {on}"><span class="k-panelbar-item-text">{text}</span></span></li>', "k-selected", "k-disabled"),
    _make('<div class="k-button-group">{items}</div>', '<button class="k-button k-button-md k-rounded-md k-button-solid k-button-solid-base {on}" {aria}><span class="k-button-text">{text}</span></button>', "k-selected", "k-disabled"),
    _make('<div class="k-drawer" style="width:240px"><ul class="k-drawer-items">{items}</ul></div>', '<li class="k-drawer-item {on}" role="menuitem" {aria}><span class="k-item-text">{text}</span></li>', "k-selected", "k-disabled"),
)  # fmt: skip
ELEMENT = (
    _make('<ul class="el-menu el-menu--vertical">{items}</ul>', '<li class="el-menu-item {on}" role="menuitem">{text}</li>', "is-active", "is-disabled"),
    _make('<ul class="el-menu el-menu--horizontal">{items}</ul>', '<li class="el-menu-item {on}" role="menuitem">{text}</li>', "is-active", "is-disabled"),
    _make('<div class="el-tabs el-tabs--top"><div class="el-tabs__header is-top"><div class="el-tabs__nav-wrap is-top"><div class="el-tabs__nav is-top">{items}</div></div></div></div>', '<div class="el-tabs__item is-top {on}" role="tab" {aria}>{text}</div>', "is-active", "is-disabled"),
    _make('<div class="el-tabs el-tabs--top el-tabs--card"><div class="el-tabs__header is-top"><div class="el-tabs__nav-wrap is-top"><div class="el-tabs__nav is-top">{items}</div></div></div></div>', '<div class="el-tabs__item is-top {on}" role="tab" {aria}>{text}</div>', "is-active", "is-disabled"),
    _make('<div class="el-tabs el-tabs--top el-tabs--border-card"><div class="el-tabs__header is-top"><div class="el-tabs__nav-wrap is-top"><div class="el-tabs__nav is-top">{items}</div></div></div></div>', '<div class="el-tabs__item is-top {on}" role="tab" {aria}>{text}</div>', "is-active", "is-disabled"),
    _make('<div class="el-pagination is-background"><ul class="el-pager">{items}</ul></div>', '<li class="number {on}">{text}</li>', "is-active", "is-disabled", "numbers"),
    _make('<div class="el-pagination"><ul class="el-pager">{items}</ul></div>', '<li class="number {on}">{text}</li>', "is-active", "is-disabled", "numbers"),
    _make('<div class="el-table el-table--fit"><table class="el-table__body" style="width:100%"><tbody>{items}</tbody></table></div>', '<tr class="el-table__row {on}">{cells}</tr>', "current-row", "", "cells"),
    _make('<div class="el-radio-group">{items}</div>', '<label class="el-radio-button {on}" {aria}><span class="el-radio-button__inner">{text}</span></label>', "is-active", "is-disabled"),
    _make('<ul class="el-select-dropdown__list">{items}</ul>', '<li class="el-select-dropdown__item {on}">{text}</li>', "is-selected", "is-disabled"),
    _make('<div class="el-tree el-tree--highlight-current">{items}</div>', '<div class="el-tree-node {on}" role="treeitem" {aria}><div class="el-tree-node__content"><span class="el-tree-node__label">{text}</span></div></div>', "is-current", ""),
)  # fmt: skip
TDESIGN = (
    _make('<div class="t-tabs"><div class="t-tabs__header"><div class="t-tabs__nav"><div class="t-tabs__nav-container"><div class="t-tabs__nav-wrap">{items}</div></div></div></div></div>', '<div class="t-tabs__nav-item t-size-m {on}" role="tab" {aria}><div class="t-tabs__nav-item-wrapper {on}"><span class="t-tabs__nav-item-text-wrapper">{text}</span></div></div>', "t-is-active", "t-is-disabled"),
    _make('<div class="t-default-menu t-menu--light" style="width:232px"><div class="t-default-menu__inner"><ul class="t-menu">{items}</ul></div></div>', '<li class="t-menu__item {on}" {aria}><span class="t-menu__content">{text}</span></li>', "t-is-active", "t-is-disabled"),
    _make('<div class="t-default-menu t-menu--dark" style="width:232px"><div class="t-default-menu__inner"><ul class="t-menu">{items}</ul></div></div>', '<li class="t-menu__item {on}" {aria}><span class="t-menu__content">{text}</span></li>', "t-is-active", "t-is-disabled"),
    _make('<div class="t-pagination"><ul class="t-pagination__pager">{items}</ul></div>', '<li class="t-pagination__number {on}" {aria}>{text}</li>', "t-is-current", "t-is-disabled", "numbers"),
    _make('<div class="t-radio-group t-radio-group__outline t-size-m">{items}</div>', '<label class="t-radio-button {on}" {aria}><span class="t-radio-button__label">{text}</span></label>', "t-is-checked", "t-is-disabled"),
    _make('<ul class="t-select__list">{items}</ul>', '<li class="t-select-option {on}" {aria}>{text}</li>', "t-is-selected", "t-is-disabled"),
)  # fmt: skip
ARCO = (
    *(_make(f'<div class="arco-menu arco-menu-{tone} arco-menu-{way}"><div class="arco-menu-inner">{{items}}</div></div>', '<div class="arco-menu-item {on}" {aria}>{text}</div>', "arco-menu-selected", "arco-menu-disabled") for tone in ("light", "dark") for way in ("vertical", "horizontal")),
    _make('<div class="arco-tabs arco-tabs-horizontal arco-tabs-line arco-tabs-top arco-tabs-type-line"><div class="arco-tabs-nav arco-tabs-nav-horizontal arco-tabs-nav-top arco-tabs-nav-type-line"><div class="arco-tabs-nav-tab"><div class="arco-tabs-nav-tab-list">{items}</div></div></div></div>', '<div class="arco-tabs-tab {on}" role="tab" {aria}><span class="arco-tabs-tab-title">{text}</span></div>', "arco-tabs-tab-active", "arco-tabs-tab-disabled"),
    _make('<div class="arco-pagination arco-pagination-size-medium"><ul class="arco-pagination-list">{items}</ul></div>', '<li class="arco-pagination-item {on}" {aria}>{text}</li>', "arco-pagination-item-active", "arco-pagination-item-disabled", "numbers"),
    _make('<span class="arco-radio-group-button arco-radio-group-size-medium">{items}</span>', '<label class="arco-radio-button {on}" {aria}><span class="arco-radio-button-content">{text}</span></label>', "arco-radio-checked", "arco-radio-disabled"),
    _make('<ul class="arco-select-dropdown-list">{items}</ul>', '<li class="arco-select-option {on}" {aria}>{text}</li>', "arco-select-option-selected", "arco-select-option-disabled"),
)  # fmt: skip
IVIEW = (
    *(_make(f'<ul class="ivu-menu ivu-menu-{tone} ivu-menu-{way}">{{items}}</ul>', '<li class="ivu-menu-item {on}" {aria}>{text}</li>', "ivu-menu-item-active ivu-menu-item-selected", "ivu-menu-item-disabled") for tone in ("light", "dark", "primary") for way in ("vertical", "horizontal")),
    *(_make(f'<div class="ivu-tabs {kind}"><div class="ivu-tabs-bar"><div class="ivu-tabs-nav-container"><div class="ivu-tabs-nav-wrap"><div class="ivu-tabs-nav-scroll"><div class="ivu-tabs-nav">{{items}}</div></div></div></div></div></div>', '<div class="ivu-tabs-tab {on}" role="tab" {aria}>{text}</div>', "ivu-tabs-tab-active ivu-tabs-tab-focused", "ivu-tabs-tab-disabled") for kind in ("", "ivu-tabs-card")),
    _make('<ul class="ivu-page">{items}</ul>', '<li class="ivu-page-item {on}" {aria}><a>{text}</a></li>', "ivu-page-item-active", "ivu-page-disabled", "numbers"),
    _make('<div class="ivu-radio-group ivu-radio-group-default ivu-radio-default ivu-radio-group-button">{items}</div>', '<label class="ivu-radio-wrapper ivu-radio-group-item ivu-radio-default {on}" {aria}>{text}</label>', "ivu-radio-wrapper-checked", "ivu-radio-wrapper-disabled"),
    _make('<ul class="ivu-select-dropdown-list">{items}</ul>', '<li class="ivu-select-item {on}" {aria}>{text}</li>', "ivu-select-item-selected", "ivu-select-item-disabled"),
    _make('<div class="ivu-table-wrapper"><div class="ivu-table"><table style="width:100%"><tbody class="ivu-table-tbody">{items}</tbody></table></div></div>', '<tr class="ivu-table-row {on}" {aria}>{cells}</tr>', "ivu-table-row-highlight", "", "cells"),
)  # fmt: skip
VANT = (
    *(_make(f'<div class="van-tabs van-tabs--{kind}"><div class="van-tabs__wrap"><div class="van-tabs__nav van-tabs__nav--{kind}">{{items}}</div></div></div>', '<div class="van-tab van-tab--{{kind}} {on}" role="tab" {aria}><span class="van-tab__text">{text}</span></div>'.replace("{{kind}}", kind), "van-tab--active", "van-tab--disabled") for kind in ("line", "card")),
    _make('<div class="van-sidebar">{items}</div>', '<a class="van-sidebar-item {on}" {aria}><div class="van-sidebar-item__text">{text}</div></a>', "van-sidebar-item--select", "van-sidebar-item--disabled"),
    _make('<ul class="van-pagination__items">{items}</ul>', '<li class="van-pagination__item van-pagination__item--page {on}" {aria}><button>{text}</button></li>', "van-pagination__item--active", "van-pagination__item--disabled", "numbers"),
    _make('<div class="van-tabbar">{items}</div>', '<div class="van-tabbar-item {on}" role="tab" {aria}><div class="van-tabbar-item__text">{text}</div></div>', "van-tabbar-item--active", ""),
)  # fmt: skip
FRANKEN = (
    _make('<ul class="uk-tab">{items}</ul>', LI, "uk-active", "uk-disabled"),
    _make('<ul class="uk-tab-alt">{items}</ul>', LI, "uk-active", "uk-disabled"),
    _make('<ul class="uk-nav uk-nav-default">{items}</ul>', LI, "uk-active", "uk-disabled"),
    _make('<ul class="uk-nav uk-nav-secondary">{items}</ul>', LI, "uk-active", "uk-disabled"),
    _make('<ul class="uk-subnav uk-subnav-primary">{items}</ul>', LI, "uk-active", "uk-disabled"),
    _make('<ul class="uk-pagination">{items}</ul>', LI, "uk-active", "uk-disabled", "numbers"),
)
AMAZE = (
    _make('<ul class="am-nav am-nav-tabs">{items}</ul>', LI, "am-active", "am-disabled"),
    _make('<ul class="am-nav am-nav-pills">{items}</ul>', LI, "am-active", "am-disabled"),
    _make('<ul class="am-nav">{items}</ul>', LI, "am-active", "am-disabled"),
    _make('<ul class="am-pagination">{items}</ul>', LI, "am-active", "am-disabled", "numbers"),
    _make(
        '<header class="am-topbar"><ul class="am-nav am-nav-pills am-topbar-nav">{items}</ul></header>',
        LI,
        "am-active",
        "am-disabled",
    ),
    _make(
        '<header class="am-topbar am-topbar-inverse"><ul class="am-nav am-nav-pills am-topbar-nav">{items}</ul></header>',
        LI,
        "am-active",
        "am-disabled",
    ),
    _make(
        '<div class="am-btn-group">{items}</div>',
        '<button class="am-btn am-btn-default {on}">{text}</button>',
        "am-active",
        "am-disabled",
    ),
    _make('<table class="am-table">{items}</table>', ROW, "am-active", "", "cells"),
)
MDUI = (
    _make('<div class="mdui-tab">{items}</div>', '<a class="mdui-ripple {on}" {aria}>{text}</a>', "mdui-tab-active", ""),
    _make('<ul class="mdui-list">{items}</ul>', '<li class="mdui-list-item mdui-ripple {on}" {aria}><div class="mdui-list-item-content">{text}</div></li>', "mdui-list-item-active", ""),
    _make('<div class="mdui-bottom-nav mdui-bottom-nav-text-auto">{items}</div>', '<a class="mdui-ripple {on}" {aria}><label>{text}</label></a>', "mdui-bottom-nav-active", ""),
    _make('<div class="mdui-table-fluid"><table class="mdui-table"><tbody>{items}</tbody></table></div>', ROW, "mdui-table-row-selected", "", "cells"),
    _make('<ul class="mdui-menu mdui-menu-open" style="position:static;transform:none;height:auto;opacity:1;visibility:visible">{items}</ul>', '<li class="mdui-menu-item" {off} {aria}><a class="mdui-ripple">{text}</a></li>'),
)  # fmt: skip
BLAZE = (
    _make('<nav class="c-nav">{items}</nav>', '<a class="c-nav__item {on}" {aria}>{text}</a>', "c-nav__item--active", ""),
    _make('<nav class="c-nav c-nav--inline c-nav--light">{items}</nav>', '<a class="c-nav__item {on}" {aria}>{text}</a>', "c-nav__item--active", ""),
    _make('<nav class="c-nav c-nav--inline">{items}</nav>', '<a class="c-nav__item c-nav__item--brand {on}" {aria}>{text}</a>', "c-nav__item--active", ""),
    _make('<nav class="c-pagination"><div class="c-pagination__controls">{items}</div></nav>', '<button class="c-pagination__page {on}" {aria}>{text}</button>', "c-pagination__page--current", "", "numbers"),
    _make('<div class="c-tabs"><div class="c-tabs__nav"><div class="c-tabs__headings">{items}</div></div></div>', '<div class="c-tab-heading {on}" role="tab" {aria}>{text}</div>', "c-tab-heading--active", "c-tab-heading--disabled"),
    _make('<div class="c-card c-card--menu">{items}</div>', '<button class="c-card__control {on}" {aria}>{text}</button>', "c-card__control--active", "c-card__control--disabled"),
    _make('<table class="c-table"><tbody class="c-table__body">{items}</tbody></table>', '<tr class="c-table__row {on}" {aria}>{cells}</tr>', "c-table__row--active", "", "cells"),
)  # fmt: skip
PRIMER = (
    _make('<nav class="UnderlineNav"><div class="UnderlineNav-body">{items}</div></nav>', '<a class="UnderlineNav-item {on}" href="#" {aria}>{text}</a>', "selected", ""),
    _make('<nav class="SideNav border" style="max-width:260px">{items}</nav>', '<a class="SideNav-item" href="#" {aria}>{text}</a>', "", ""),
    _make('<nav class="SideNav">{items}</nav>', '<a class="SideNav-subItem" href="#" {aria}>{text}</a>', "", ""),
    _make('<nav class="menu">{items}</nav>', '<a class="menu-item" href="#" {aria}>{text}</a>', "", ""),
    _make('<div class="tabnav"><nav class="tabnav-tabs">{items}</nav></div>', '<a class="tabnav-tab {on}" href="#" {aria}>{text}</a>', "selected", ""),
    _make('<nav class="paginate-container"><div class="pagination">{items}</div></nav>', '<a href="#" class="{on}" {aria}>{text}</a>', "current", "", "numbers"),
    _make('<nav class="subnav"><div class="subnav-links">{items}</div></nav>', '<a class="subnav-item {on}" href="#" {aria}>{text}</a>', "selected", ""),
    _make('<div class="BtnGroup">{items}</div>', '<button class="BtnGroup-item btn {on}" {aria}>{text}</button>', "selected", ""),
    _make('<ul class="filter-list">{items}</ul>', '<li><a class="filter-item {on}" href="#" {aria}>{text}</a></li>', "selected", ""),
)  # fmt: skip
W3 = (
    *(_make(f'<div class="w3-bar w3-{tone}">{{items}}</div>', '<a class="w3-bar-item w3-button {on}" {aria}>{text}</a>', on, "w3-disabled") for tone, on in (("black", "w3-green"), ("light-grey", "w3-blue"), ("teal", "w3-dark-grey"), ("white w3-border", "w3-light-grey"))),
    *(_make(f'<div class="w3-bar-block w3-{tone}">{{items}}</div>', '<a class="w3-bar-item w3-button {on}" {aria}>{text}</a>', on, "w3-disabled") for tone, on in (("light-grey", "w3-red"), ("white w3-card", "w3-blue-grey"), ("dark-grey", "w3-black"))),
    _make('<div class="w3-row">{items}</div>', '<a class="w3-col s3 w3-bottombar w3-padding {on}" href="#" {aria} style="text-decoration:none">{text}</a>', "w3-border-red", ""),
    _make('<div class="w3-bar w3-border">{items}</div>', '<a class="w3-bar-item w3-button {on}" {aria}>{text}</a>', "w3-green", "", "numbers"),
    _make('<table class="w3-table w3-bordered">{items}</table>', ROW, "w3-pale-green", "", "cells"),
)  # fmt: skip
MATERIAL = (
    _make('<div class="mdc-tab-bar"><div class="mdc-tab-scroller"><div class="mdc-tab-scroller__scroll-area"><div class="mdc-tab-scroller__scroll-content">{items}</div></div></div></div>', '<button class="mdc-tab {on}" role="tab" {aria}><span class="mdc-tab__content"><span class="mdc-tab__text-label">{text}</span></span><span class="mdc-tab-indicator {on}"><span class="mdc-tab-indicator__content mdc-tab-indicator__content--underline"></span></span></button>', "mdc-tab--active mdc-tab-indicator--active", ""),
    *(_make('<ul class="mdc-deprecated-list">{items}</ul>', '<li class="mdc-deprecated-list-item {on}" {aria}><span class="mdc-deprecated-list-item__text">{text}</span></li>', f"mdc-deprecated-list-item--{on}", "mdc-deprecated-list-item--disabled") for on in ("activated", "selected")),
    _make('<aside class="mdc-drawer"><div class="mdc-drawer__content"><nav class="mdc-deprecated-list">{items}</nav></div></aside>', '<a class="mdc-deprecated-list-item {on}" href="#" {aria}><span class="mdc-deprecated-list-item__text">{text}</span></a>', "mdc-deprecated-list-item--activated", ""),
    _make('<div class="mdc-data-table"><table class="mdc-data-table__table"><tbody class="mdc-data-table__content">{items}</tbody></table></div>', '<tr class="mdc-data-table__row {on}" {aria}>{cells}</tr>', "mdc-data-table__row--selected", "", "cells"),
    _make('<div class="mdc-segmented-button">{items}</div>', '<button class="mdc-segmented-button__segment {on}" {aria}><div class="mdc-segmented-button__label">{text}</div></button>', "mdc-segmented-button__segment--selected", ""),
)  # fmt: skip
PURE = (
    _make('<div class="pure-menu pure-menu-horizontal"><ul class="pure-menu-list">{items}</ul></div>', '<li class="pure-menu-item {on}"><a href="#" class="pure-menu-link">{text}</a></li>', "pure-menu-selected", "pure-menu-disabled"),
    _make('<div class="pure-menu" style="max-width:220px"><ul class="pure-menu-list">{items}</ul></div>', '<li class="pure-menu-item {on}"><a href="#" class="pure-menu-link">{text}</a></li>', "pure-menu-selected", "pure-menu-disabled"),
    _make('<div class="pure-button-group">{items}</div>', '<button class="pure-button {on}">{text}</button>', "pure-button-active", "pure-button-disabled"),
)  # fmt: skip
WORDPRESS = (
    _make('<div class="components-tab-panel__tabs" role="tablist">{items}</div>', '<button class="components-button components-tab-panel__tabs-item {on}" role="tab" {aria}>{text}</button>', "is-active active-tab", ""),
    _make('<div class="components-menu-group"><div role="group">{items}</div></div>', '<button class="components-button components-menu-item__button {on}" {aria}><span class="components-menu-item__item">{text}</span></button>', "is-pressed", ""),
    _make('<div class="components-accessible-toolbar components-toolbar">{items}</div>', '<button class="components-button components-toolbar-button {on}" {aria}>{text}</button>', "is-pressed", ""),
)  # fmt: skip
RADIX = (
    *(_make(f'<div class="radix-themes"><div class="rt-BaseTabList rt-TabsList rt-r-size-{size}">{{items}}</div></div>', '<button class="rt-reset rt-BaseTabListTrigger rt-TabsTrigger" {data} role="tab" {aria}><span class="rt-BaseTabListTriggerInner rt-TabsTriggerInner">{text}</span></button>') for size in (1, 2)),
    _make('<div class="radix-themes"><div class="rt-BaseMenuContent rt-DropdownMenuContent rt-r-size-2 rt-variant-solid"><div class="rt-BaseMenuViewport">{items}</div></div></div>', '<div class="rt-BaseMenuItem rt-DropdownMenuItem" {lit} role="menuitem" {aria}>{text}</div>'),
)  # fmt: skip
NHS = (
    _make('<nav class="nhsuk-contents-list"><ol class="nhsuk-contents-list__list">{items}</ol></nav>', '<li class="nhsuk-contents-list__item" {aria}><span class="nhsuk-contents-list__{on}">{text}</span></li>', "current", "link"),
)  # fmt: skip
WEUI = (
    _make('<div class="weui-navbar" style="position:static">{items}</div>', '<div class="weui-navbar__item {on}" role="tab" {aria}>{text}</div>', "weui-bar__item_on", ""),
    _make('<div class="weui-tabbar" style="position:static">{items}</div>', '<a class="weui-tabbar__item {on}" {aria}><p class="weui-tabbar__label">{text}</p></a>', "weui-bar__item_on", ""),
)  # fmt: skip
ATLAS = (
    _make(
        '<div class="ak-tabs"><ul class="ak-tabs__labels">{items}</ul></div>',
        '<li class="ak-tabs__label" {chosen} {aria}>{text}</li>',
    ),
)
ZEN_TAB = '<li class="c-tab__list__item {on}" role="tab" {aria}>{text}</li>'
BULMA = (
    *(_make(f'<div class="tabs {kind}"><ul>{{items}}</ul></div>', LI, "is-active", "") for kind in ("", "is-boxed", "is-toggle", "is-toggle is-toggle-rounded")),
    _make('<aside class="menu"><p class="menu-label">General</p><ul class="menu-list">{items}</ul></aside>', '<li><a class="{on}" {aria}>{text}</a></li>', "is-active", ""),
    _make('<nav class="pagination"><ul class="pagination-list">{items}</ul></nav>', '<li><a class="pagination-link {on}" {aria}>{text}</a></li>', "is-current", "", "numbers"),
    _make('<nav class="panel"><p class="panel-heading">Heading</p><p class="panel-tabs">{items}</p></nav>', '<a class="{on}" {aria}>{text}</a>', "is-active", ""),
    _make('<nav class="panel">{items}</nav>', '<a class="panel-block {on}" {aria}>{text}</a>', "is-active", ""),
    _make('<div class="dropdown-content">{items}</div>', '<a class="dropdown-item {on}" {aria}>{text}</a>', "is-active", ""),
    _make('<table class="table is-fullwidth"><tbody>{items}</tbody></table>', ROW, "is-selected", "", "cells"),
    *(_make(f'<nav class="navbar {tone}"><div class="navbar-menu is-active" style="display:flex;box-shadow:none"><div class="navbar-start" style="display:flex">{{items}}</div></div></nav>', '<a class="navbar-item {on}" {aria}>{text}</a>', "is-active", "") for tone in ("", "is-dark", "is-primary")),
)  # fmt: skip
SIMPLE = {
    "muicss": (_make('<ul class="mui-tabs__bar">{items}</ul>', '<li class="{on}"><a>{text}</a></li>', "mui--is-active", ""), _make('<ul class="mui-tabs__bar mui-tabs__bar--justified">{items}</ul>', '<li class="{on}"><a>{text}</a></li>', "mui--is-active", "")),
    "chota": (_make('<nav class="tabs">{items}</nav>', A), _make('<nav class="nav"><div class="nav-left">{items}</div></nav>', A), _make('<nav class="tabs is-full">{items}</nav>', A)),
    "xp.css": (_make('<menu role="tablist">{items}</menu>', '<button role="tab" {aria}>{text}</button>'),),
    "7.css": (_make('<section class="tabs"><menu role="tablist">{items}</menu></section>', '<button role="tab" {aria}>{text}</button>'), _make('<ul role="listbox" class="has-hover">{items}</ul>', '<li role="option" {aria}>{text}</li>'), _make('<table class="has-hover"><tbody>{items}</tbody></table>', ROW, "highlighted", "", "cells"), _make('<ul role="menu" style="position:static">{items}</ul>', '<li role="menuitem" {off} {aria}><a href="#menu">{text}</a></li>')),
    "shoelace-css": (_make('<div class="tabs"><nav class="tabs-nav">{items}</nav></div>', A), _make('<div class="tabs tabs-pills"><nav class="tabs-nav">{items}</nav></div>', A)),
    "cirrus-ui": (_make('<div class="tab-container"><ul>{items}</ul></div>', '<li class="{on}"><div class="tab-item-content">{text}</div></li>', "selected", ""), _make('<div class="pagination">{items}</div>', '<div class="pagination-item {on}" {aria}><a href="#">{text}</a></div>', "selected", "", "numbers"), _make('<ul class="menu">{items}</ul>', '<li class="menu-item {on}"><a href="#">{text}</a></li>', "selected", ""), _make('<div class="tab-container tabs--classic tabs--fill"><ul>{items}</ul></div>', '<li class="{on}"><div class="tab-item-content">{text}</div></li>', "selected", "")),
    "turretcss": (_make('<nav class="pagination"><ul>{items}</ul></nav>', '<li><a class="{on}" href="#" {aria}>{text}</a></li>', "active", "disabled", "numbers"), _make('<div class="button-group">{items}</div>', '<button class="button {on}">{text}</button>')),
    "puppertino": (_make('<div class="p-segmented-controls">{items}</div>', A), _make('<div class="p-tabs-container"><div class="p-tabs">{items}</div></div>', '<button class="p-tab {on}" {aria}>{text}</button>', "p-is-active", "p-is-disabled"), _make('<div class="p-segmented-controls p-segmented-radius p-segmented-outlined">{items}</div>', A)),
    "terminal.css": (_make('<nav class="terminal-menu"><ul>{items}</ul></nav>', '<li><a class="menu-item {on}" href="#" {aria}>{text}</a></li>'), _make('<aside><ul>{items}</ul></aside>', '<li><a class="{on}" href="#" {aria}>{text}</a></li>')),
    "missing.css": (_make('<div role="tablist">{items}</div>', '<button role="tab" {aria}>{text}</button>'), _make('<header class="navbar"><nav><ul role="list">{items}</ul></nav></header>', '<li><a href="#" {aria}>{text}</a></li>'), _make('<nav class="sidebar"><ul role="list">{items}</ul></nav>', '<li><a href="#" {aria}>{text}</a></li>')),
}  # fmt: skip
GROUPS: dict[str, tuple[ItemGroup, ...]] = {
    "bootswatch": BOOTSTRAP, "bootstrap@4": BOOTSTRAP, "@trimbleinc/modus-bootstrap": BOOTSTRAP,
    "bootswatch@3": BOOTSTRAP_3, "primevue": PRIME, "@progress/kendo-theme-default": KENDO, "element-plus": ELEMENT,
    "tdesign-vue-next": TDESIGN, "@arco-design/web-vue": ARCO, "view-design": IVIEW, "vant": VANT,
    "franken-ui": FRANKEN, "amazeui": AMAZE, "mdui": MDUI, "@blaze/css": BLAZE, "@primer/css": PRIMER, "w3-css": W3,
    "material-components-web": MATERIAL, "purecss": PURE, "@wordpress/components": WORDPRESS, "@radix-ui/themes": RADIX,
    "nhsuk-frontend": NHS, "weui": WEUI, "@atlaskit/reduced-ui-pack": ATLAS, "bulmaswatch": BULMA, **SIMPLE,
}  # fmt: skip
FAMILIES = {"bootswatch": "bootstrap", "bootstrap@4": "bootstrap", "@trimbleinc/modus-bootstrap": "bootstrap", "bootswatch@3": "bootstrap-3", "@progress/kendo-theme-default": "kendo"}  # fmt: skip
BULMA_THEMES = "cerulean cosmo cyborg darkly default flatly journal litera lumen lux materia minty nuclear pulse sandstone simplex slate solar spacelab superhero united yeti".split()
MORE_PACKAGES = {
    f"bulmaswatch {theme}": StylePackage((f"{theme}/bulmaswatch.min.css",), ("button", "button is-primary", "button is-light", "button is-outlined"), "input", card="box", badge="tag")
    for theme in BULMA_THEMES
}  # fmt: skip


def is_scored_only(package: str) -> bool:
    """Return whether a package's family is never trained on."""
    return sha256(f"states {FAMILIES.get(package, package)}".encode()).digest()[0] % SCORED_ONLY == 0


def list_kits() -> dict[str, StylePackage]:
    """Return the packages that have groups of items, some with a theme after their name."""
    every = {**PACKAGES, **MORE_PACKAGES}
    return {name: package for name, package in every.items() if name and name.split()[0] in GROUPS}


class KitStatePage(PageWriter):
    """Writes one page of groups, and of other things, in a package's own looks."""

    def write(self, link: str, groups: Sequence[ItemGroup]) -> str:
        chance = self.chance
        others = [self.actions, self.toolbar, self.form, self.table, self.badges, self.headed, self.button_grid]
        cells = [self.group_items(chance.choice(groups)) for _ in range(chance.randint(5, 8))]
        cells += [chance.choice(others)() for _ in range(chance.randint(3, 6))]
        chance.shuffle(cells)
        side = "".join(self.group_items(chance.choice(groups)) for _ in range(2)) if chance.random() < 0.6 else ""
        theme, width = "dark" if self.dark else "light", chance.choice((380, 460, 600))
        body = "".join(f'<div class="x-cell">{cell}</div>' for cell in cells)
        return (
            f'<!DOCTYPE html><html data-bs-theme="{theme}" data-theme="{theme}"><meta charset="utf-8">{link}'
            f"<style>{self.package.more}.y-page{{display:flex}}.y-side{{width:{chance.choice((180, 220, 260))}px;flex:none;padding:12px}}"
            f".x-main{{flex:1;padding:12px;column-gap:24px;column-width:{width}px}}.x-cell{{break-inside:avoid;margin-bottom:16px}}"
            ".x-bar{display:flex;gap:8px;flex-wrap:wrap;align-items:center}.x-column{display:flex;flex-direction:column;gap:6px;align-items:start}"
            f'</style><body {self.package.body.format(scheme=theme)}><div class="y-page">'
            f'{f"""<div class="y-side">{side}</div>""" if side else ""}<div class="x-main">{body}</div></div>'
        )

    def group_items(self, group: ItemGroup) -> str:
        """Write a group, mostly with one item that is selected and now and then one that is disabled."""
        chance = self.chance
        count = chance.randint(3, 7) if group.kind != "words" else chance.randint(2, 6)
        on = chance.randrange(count) if chance.random() < 0.88 else -1
        off = chance.randrange(count) if chance.random() < 0.15 else -1
        icons, columns, start = chance.random() < SIDE, chance.randint(2, 4), chance.choice((1, 1, 1, 5, 12))
        items = []
        for at in range(count):
            text = str(start + at) if group.kind == "numbers" else self.name(1, 2)
            if icons and group.kind == "words":
                text = f"{self.icon(16)} {text}"
            state = group.on if at == on else group.off if at == off else ""
            items.append(
                group.item.format(
                    on=state, text=text, cells="".join(CELL.format(text=self.name(1, 2)) for _ in range(columns)),
                    aria='aria-current="true" aria-selected="true"' if at == on else 'aria-selected="false"',
                    off="disabled" if at == off else "", data=f'data-state="{"active" if at == on else "inactive"}"',
                    lit="data-highlighted" if at == on else "", chosen="data-selected" if at == on else "",
                )
            )  # fmt: skip
        return group.around.format(items="".join(items))

    def actions(self) -> str:
        return f'<div class="x-bar">{"".join(self.button() for _ in range(self.chance.randint(2, 5)))}</div>'

    def badges(self) -> str:
        return f'<div class="x-bar">{"".join(self.badge() for _ in range(self.chance.randint(2, 6)))}</div>'

    def headed(self) -> str:
        """Write a heading, a text with a link, and a list."""
        items = "".join(f"<li>{self.name(1, 3)}</li>" for _ in range(self.chance.randint(2, 5)))
        return f'<h4>{self.name(1, 3)}</h4><p>{self.sentence()} <a href="#">{self.name(1, 2)}</a> <b>{self.name(1, 2)}</b></p><ul>{items}</ul>'


def write_kit_state_page(name: str, package: StylePackage, number: int, fonts: Mapping[str, Sequence[str]]) -> str:
    """Return the HTML of one page; the package is beside it in `package/`, and icons with these names in `icons/`."""
    chance = random.Random(f"states {name} {number}")
    font = chance.choice(list(ICON_FONTS)) if chance.random() < 0.7 else ""
    dark = "dark" in name or (chance.random() < 0.2 and name.startswith(("bootswatch ", "radix", "franken")))
    writer = KitStatePage(chance, replace(package), (ICON_FONTS[font][1], fonts[font]) if font else None, dark=dark)
    sheets = chance.choice(package.styles).split()
    links = "".join(f'<link rel="stylesheet" href="package/{sheet}">' for sheet in sheets)
    links += f'<link rel="stylesheet" href="icons/{font}/{ICON_FONTS[font][0]}">' if font else ""
    return writer.write(links, GROUPS[name.split()[0]])
