"""Facts about upstreams and their models, as data. Pure: no clock, disk or network."""
