"""The facts about upstreams: lookups, rejections and their table in the documentation."""
