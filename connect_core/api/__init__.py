"""What programs call over HTTP: thin edges over `service`, as the command line is. `app.made` puts them together."""
