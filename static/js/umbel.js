// The script of the dashboard.
