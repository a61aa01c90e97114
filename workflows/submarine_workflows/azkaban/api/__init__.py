"""Client of Azkaban's AJAX interface."""
